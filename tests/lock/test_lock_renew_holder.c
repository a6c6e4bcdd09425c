/* Renewal and its holder: progress, the longest hold, fork. */
#include "tests/lib/play.h"
#include "tests/lib/renew_world.h"

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

static int child_of_a_holder(struct lock_world *w, struct ll_renewer *r)
{
    bool ok = ll_renew(r, w->lb, 0, 0) == LL_E_FORKED && ll_renew_due(r) == -1;

    ok = ok && ll_release(w->la) == LL_E_FORKED;
    ll_renew_stop(r, w->la);
    ll_progress(w->lb);
    ll_renewer_close(r);
    ll_free(w->la);
    ll_close(w->a);
    return ok ? 0 : 1;
}

LOCK_CASE(child_of_fork_neither_renews_nor_disturbs_the_parent)
{
    struct told told = {0};
    RENEWER *r = open_renewer(w->a, &told, 1);

    assert_int_equal(ll_try(w->la, "user:1", LOCK_SOON_MS), LL_OK);
    assert_int_equal(ll_try(w->lb, "user:2", LOCK_SOON_MS), LL_OK);
    assert_int_equal(ll_renew(r, w->la, 0, 0), LL_OK);
    for (int i = 0; i < 50; i++) { /* renewed every ms: some forks hit it at work */
        pid_t pid = fork();

        if (pid == 0)
            _exit(child_of_a_holder(w, r));
        assert_int_equal(fixture_reap(pid, LOCK_SOON_MS / 1000), 0);
        assert_true(ll_valid(w->la, 0));
    }
    await_renewals(r, 3);
    assert_int_equal(ll_release(w->la), LL_OK);
    assert_int_equal(told.times, 0);
}
