/* Redis Cluster: the primary of the slot dies, or hands over to its replica. Each test
 * has a cluster of its own. */
#include "tests/lib/play_cluster.h"

#define USED "a limits 5000; a try used; a release"

CLUSTER_FRESH(lock_is_kept_when_the_primary_hands_over)
{
    play(USED "; a try k; slot hand_over; a extend; a verify; a release; a try k; "
              "copies k: 1");
}

/* Clients that acquire all the while: tokens only rise, and faults pass. */
CLUSTER_FRESH(tokens_rise_while_the_primary_hands_over)
{
    const struct rlock_key key = {"k", 1};
    struct rlock *l;
    size_t replica = play_cluster.owner + CLUSTER_PRIMARIES;
    int granted = 0, more = 200;
    int64_t last;
    pid_t pid;

    play(USED);
    l = play_lock("a");
    last = playing.last_token;
    (void)fflush(NULL);
    pid = fork();
    if (pid == 0) {
        play("rest 200; slot hand_over");
        _exit(0);
    }
    while (more > 0) {
        assert_int_equal(rlock_acquire_wait(l, &key, 1, RLOCK_ALL, 60000, 60000, -1),
                         RLOCK_OK);
        assert_true(rlock_token(l) > last);
        last = rlock_token(l);
        assert_true(granted++ < 100000);
        while (rlock_release(l) < 0)
            fixture_pause_ms(5);
        if (cluster_ask(&play_cluster.w, replica, "EXISTS %s!last", w->prefix) == 1)
            more--; /* it is the primary now */
        fixture_pause_ms(1);
    }
    assert_int_equal(fixture_reap(pid, 120), 0);
    assert_true(granted > 200);
}

CLUSTER_FRESH(wait_goes_through_the_death_of_the_primary)
{
    play(USED "; slot kill; a begin k 60000; a end; slot follow; copies k: 1; "
              "a extend; a release");
}

/* The replica has the lock: the lease is long enough for the failover. */
CLUSTER_FRESH(renewal_goes_on_across_the_death_of_the_primary)
{
    play("a replicas 1; a limits 5000; a wait k 60000; a renew 300 0 600000; "
         "slot kill; slot follow; a renewed 2; a losses: 0; a valid; a release");
}

/* The lease is shorter than the failover: the holder hears of it in time. */
CLUSTER_FRESH(renewal_tells_what_the_failover_outlasted)
{
    play(USED "; a try k 5000; a renew 0 0 60000; slot kill_replica; slot kill; "
              "a loss: fault; a losses: 1"); /* nobody can take over */
}
