/* Renewal: locks that live on, batches of them, and their holders: progress, the
 * longest hold, fork. */
#include <stdatomic.h>
#include <time.h>

#include "tests/lib/play.h"
#include "tests/lib/renew_world.h"

PLAY_CASE(play_on_one, renewed_lock_outlives_its_lease_with_the_same_token)
{
    int64_t token;

    play("a stepped; a take k; a renew");
    token = rlock_token(play_lock("a"));
    for (int i = 0; i < 6; i++)
        play("time 20000; a round: 0; a valid; ttl k: 45000-60000");
    promise_int_equal(rlock_token(play_lock("a")), token);
    play("minted: 0; a release; copies k: 0; time 60000; a round: 0; copies k: 0; "
         "a losses: 0");
}

PLAY_ONE(renewal_never_shortens_and_gives_an_end_back,
         "a take k 20000; a renew 300; a2 take j 20000; a2 renew; redis PERSIST @k; "
         "redis PEXPIRE @j 120000; a renewed 4; redis PTTL @k: 1-20000; "
         "redis PTTL @j: 60000-120000; a losses: 0");

/* The end is far beyond the next renewal. */
PLAY_ONE(closed_renewer_leaves_its_locks_to_their_lease,
         "a take k 20000; a renew 300; a2 take j 20000; a2 renew; a close_renewer; "
         "a2 release; redis PEXPIRE @k 1000; await copies k: 0; a release: gone; "
         "a losses: 0");

enum { LOSSES = 30 };

static atomic_bool is_told;

static void tell_end(struct rlock *l, int code, void *arg)
{
    (void)l;
    (void)code;
    (void)arg;
    is_told = true;
}

/* Under ThreadSanitizer (scripts/test --only threads) a touch of the lock after its
 * holder was told is seen whenever it happens. */
/* Guarantee: A lock may be freed by its thread as soon as its loss was told. */
LOCK_CASE(lock_is_freed_as_soon_as_its_loss_was_told)
{
    struct rlock_renew_options o = {
        .size = sizeof o, .interval_ms = 5, .on_lost = tell_end};
    RENEWER *r = NULL;

    assert_int_equal(rlock_renewer_open(&r, w->a, &o), RLOCK_OK);
    for (int i = 0; i < LOSSES; i++) {
        struct rlock *l = rlock_new(w->a);

        is_told = false;
        assert_int_equal(rlock_try(l, "k", 3000), RLOCK_OK);
        assert_int_equal(rlock_renew(r, l, 0, 0), RLOCK_OK);
        lock_raw_do(w, "DEL lock:k");
        LOCK_AWAIT(is_told);
        rlock_free(l);
    }
}

static double cpu_ms(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

PLAY_CASE(play_on_one, renewer_with_nothing_due_sleeps)
{
    struct told told = {0};
    RENEWER *r = open_renewer(play_client("a"), &told, 0);
    double before;

    play("a take k");
    assert_int_equal(rlock_renew(r, play_lock("a"), 0, 0), RLOCK_OK);
    before = cpu_ms();
    play("rest 1000");
    assert_true(cpu_ms() - before < 50);
    assert_int_equal(figures_of(r).rounds, 0);
}

/* The renewer has begun to sleep when it is given the two. */
/* Guarantee: A lock that is due later, given to a renewer that sleeps, delays no
 * renewal of one that is due earlier. */
PLAY_ONE(lock_that_is_due_later_delays_no_other,
         "a3 take first; a3 renew; rest 200; a try early 6000; a2 take late; a renew; "
         "a2 renew; a renewed 1; promise a losses: 0; promise a valid");

/* ---- on_lost ---- */

static struct {
    struct told told;
    atomic_bool may_end, has_waited_in_vain;
} slow;

static void note_loss_slowly(struct rlock *l, int code, void *arg)
{
    int64_t limit_ms = fixture_now_ms() + 20000;

    (void)arg;
    note_loss(l, code, &slow.told);
    while (!slow.may_end && fixture_now_ms() < limit_ms)
        fixture_pause_ms(5);
    slow.has_waited_in_vain = !slow.may_end;
}

/* Guarantee: A release waits for no on_lost of another lock, also of the same renewal.
 */
PLAY_CASE(play_on_one, release_waits_for_no_loss_of_another_lock)
{
    struct rlock_renew_options o = {
        .size = sizeof o, .interval_ms = 300, .on_lost = note_loss_slowly};
    RENEWER *r;

    memset(&slow, 0, sizeof slow);
    assert_int_equal(rlock_renewer_open(&r, play_client("a"), &o), RLOCK_OK);
    figures_begin(r);
    play("a take k 20000; a2 take j 20000");
    assert_int_equal(rlock_renew(r, play_lock("a"), 0, 0), RLOCK_OK);
    assert_int_equal(rlock_renew(r, play_lock("a2"), 0, 0), RLOCK_OK);
    await_renewals(r, 2);
    play("del k");
    LOCK_AWAIT(slow.told.times > 0);
    play("a2 release");
    slow.may_end = true;
    rlock_renew_stop(r, play_lock("a"));
    promise_false(slow.has_waited_in_vain);
    promise_int_equal(slow.told.times, 1);
}

/* ---- batches ---- */

/* The second is due five seconds later. */
PLAY_ONE(lock_that_is_being_released_is_not_renewed,
         "p limits 500; p connect; p try k; proxy refuse; p release: fault; "
         "p renew: inval; proxy welcome; p release; copies k: 0");

PLAY_ONE(locks_of_several_leases_go_together,
         "a stepped; a2 take late 75000; a take early; a2 renew; "
         "a renew; redis CONFIG RESETSTAT; time 20000; a round: 0; calls evalsha: 1; "
         "ttl early: 45000-60000; ttl late: 60000-75000");

/* The key of b, in their midst, is left alone. */
PLAY_ONE(locks_beyond_one_script_call_are_renewed_call_by_call,
         "a stepped; b take k:500; a any k:0..799: partial; a2 all m:0..799; a renew; "
         "a2 renew; redis CONFIG RESETSTAT; time 20000; a round: 0; calls evalsha: 2; "
         "time 20000; a round: 0; calls evalsha: 4; time 10000; a valid 20000; "
         "a2 valid 20000; keys: 1600; ttl k:0: 35000-50000; ttl m:799: 35000-50000; "
         "ttl k:500: 1-10000; del m:799; time 10000; a round: 1; a2 loss: lost");

/* Guarantee: A renewer that cannot reach Redis rests between its tries, also when its
 * locks have more keys than fit into one call. */
PLAY_CASE(play_on_one, renewer_without_redis_rests)
{
    struct told told = {0};
    RENEWER *r = open_stepped(play_client("a"), &told, 0);

    play("a any k:0..599; a2 all m:0..599");
    assert_int_equal(rlock_renew(r, play_lock("a"), 0, 0), RLOCK_OK);
    assert_int_equal(rlock_renew(r, play_lock("a2"), 0, 0), RLOCK_OK);
    play("time 20000; server kill");
    assert_true(renew_now(r) < 0);
    for (int i = 0; i < 4; i++) /* those that are tried at once */
        (void)!renew_now(r);
    assert_true(renew_due(r) > 0);
    assert_int_equal(told.times, 0);
    play("server start");
}

static void *let_it_go_on(void *server)
{
    fixture_pause_ms(200);
    assert_int_equal(kill(*(pid_t *)server, SIGCONT), 0);
    return NULL;
}

/* Guarantee: 500 locks are renewed by one script call a round, and none runs out
 * though the server stops for 200 ms. */
PLAY_CASE(play_on_one, renew_500_locks)
{
    enum { LOCKS = 500, LEASE = 60000 };

    static struct rlock *locks[LOCKS];
    struct told told = {0};
    RENEWER *r = open_stepped(play_client("a"), &told, 0);
    pthread_t thread;

    hold_many(play_client("a"), r, locks, LOCKS, LEASE);
    play("a take j; a extend; redis CONFIG RESETSTAT"); /* it knows the script */
    figures_begin(r);
    for (int i = 0; i < 4; i++) {
        play("time 20000; server stop");
        assert_int_equal(
            pthread_create(&thread, NULL, let_it_go_on, &w->servers[0].pid), 0);
        assert_int_equal(renew_now(r), RLOCK_OK);
        assert_int_equal(pthread_join(thread, NULL), 0);
    }
    play("keys: 500; calls evalsha: 4");
    for (size_t i = 0; i < LOCKS; i++)
        promise_true(rlock_valid(locks[i], LEASE / 2));
    assert_int_equal(figures_of(r).renewals, 4 * LOCKS);
    assert_int_equal(figures_of(r).trips, 4);
    assert_int_equal(told.times, 0);
    free_many(locks, LOCKS);
}

/* ---- the holder ---- */

/* A third of the lease goes by; it is renewed, with a holder that gets on or without;
 * it is not. */
#define RENEWED "time 20000; a round: 0; ttl k: 45000-60000; "
#define FED "time 20000; a progress; a round: 0; ttl k: 45000-60000; "
#define LEFT_ALONE "time 20000; a round: 0; ttl k: 1-40000; "

/* Told in the last second; nothing is of any use then. */
#define LOST                                                                           \
    "a valid; ttl k: 1-20000; time 18800; a progress; a round: 1; a loss: gone; "      \
    "time 1500; copies k: 0; a progress; time 20000; a round: 1; copies k: 0; "        \
    "a losses: 1"

/* Guarantee: A holder that renews but does nothing loses its key after stall and
 * lease. */
PLAY_ONE(watchdog_stops_without_progress,
         "a stepped; a take k; a renew 0 50000 600000; " FED FED FED FED FED FED RENEWED
             RENEWED LEFT_ALONE "time 20000; a round: 0; " LOST);

/* Guarantee: A lock ends at max_hold, whatever its holder does. */
PLAY_ONE(watchdog_stops_at_max_hold_whatever_progress,
         "a stepped; a take k; a renew 0 50000 90000; " FED FED FED FED
         "time 20000; a progress; a round: 0; ttl k: 1-40000; "
         "time 20000; a progress; a round: 0; " LOST);

PLAY_ONE(progress_before_the_lease_ran_out_is_renewed_again,
         "a stepped; a take k; a renew 0 30000 600000; " RENEWED LEFT_ALONE FED
         "a release; a losses: 0");

static int child_of_a_holder(struct lock_world *w, struct rlock_renewer *r)
{
    bool ok = rlock_renew(r, w->lb, 0, 0) == RLOCK_E_FORKED;

    ok = ok && rlock_release(w->la) == RLOCK_E_FORKED;
    rlock_renew_stop(r, w->la);
    rlock_progress(w->lb);
    rlock_renewer_close(r);
    rlock_free(w->la);
    rlock_close(w->a);
    return ok ? 0 : 1;
}

LOCK_CASE(child_of_fork_neither_renews_nor_disturbs_the_parent)
{
    struct told told = {0};
    RENEWER *r = open_renewer(w->a, &told, 1);

    assert_int_equal(rlock_try(w->la, "user:1", LOCK_SOON_MS), RLOCK_OK);
    assert_int_equal(rlock_try(w->lb, "user:2", LOCK_SOON_MS), RLOCK_OK);
    assert_int_equal(rlock_renew(r, w->la, 0, 0), RLOCK_OK);
    for (int i = 0; i < 50; i++) { /* renewed every ms: some forks hit it at work */
        pid_t pid = fork();

        if (pid == 0)
            _exit(child_of_a_holder(w, r));
        assert_int_equal(fixture_reap(pid, LOCK_SOON_MS / 1000), 0);
        assert_true(rlock_valid(w->la, 0));
    }
    await_renewals(r, 3);
    assert_int_equal(rlock_release(w->la), RLOCK_OK);
    assert_int_equal(told.times, 0);
}
