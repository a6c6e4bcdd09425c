/* Renewal and its holder: re-entrance, progress, the longest hold, fork. */
#include "tests/lib/play.h"
#include "tests/lib/renew_world.h"

enum { LEASE_MS = 2000, SLACK_MS = LEASE_MS / 4, STALL_MS = 1500, HOLD_MS = 3000 };

PLAY_NODES(reentrant_lock_is_renewed_until_the_outermost_release,
           "a reentrant; a take k 9000; a renew 300; a try k; a renewed 4; a release; "
           "a holds: 1; a renewed 4; a valid; a release; copies k: 0; a losses: 0");

/* Guarantee: A holder that renews but does nothing loses its key after stall and
 * lease. */
LOCK_CASE(watchdog_stops_without_progress)
{
    struct told told = {0};
    RENEWER *r = open_renewer(w->a, &told, 0);
    int64_t fed_ms = 0, asked_ms;

    assert_int_equal(ll_try(w->la, "user:1", LEASE_MS), LL_OK);
    assert_int_equal(ll_renew(r, w->la, STALL_MS, 60000), LL_OK);
    while (figures_of(r).renewals < 6) { /* goes on past stall and lease */
        fixture_pause_ms(50);
        ll_progress(w->la);
        fed_ms = ll_now_ms();
        assert_true(ll_valid(w->la, 0));
    }
    LOCK_AWAIT(told.times == 1); /* it stays ours until its lease has run out */
    assert_true(told.least_left_ms < LEASE_MS - STALL_MS);
    asked_ms = ll_now_ms();
    assert_true(asked_ms + lock_raw_integer(w, "PTTL lock:user:1") <=
                fed_ms + STALL_MS + LEASE_MS + SLACK_MS);
    assert_int_equal(read_losses(r, LOCK_SOON_MS), 1);
    assert_false(ll_valid(w->la, 0));
    LOCK_AWAIT(lock_raw_integer(w, "EXISTS lock:user:1") == 0);
    assert_int_equal(told.times, 1);
    assert_int_equal(told.code, LL_GONE);
    ll_progress(w->la); /* too late */
    fixture_pause_ms(LEASE_MS);
    assert_int_equal(lock_raw_integer(w, "EXISTS lock:user:1"), 0);
    assert_int_equal(read_losses(r, 0) + told.times, 1);
}

/* Guarantee: A lock ends at max_hold, whatever its holder does. */
LOCK_CASE(watchdog_stops_at_max_hold_whatever_progress)
{
    struct told told = {0};
    RENEWER *r = open_renewer(w->a, &told, 0);
    int64_t start_ms = ll_now_ms();

    assert_int_equal(ll_try(w->la, "user:1", LEASE_MS), LL_OK);
    assert_int_equal(ll_renew(r, w->la, 1000, HOLD_MS), LL_OK);
    while (ll_now_ms() - start_ms <= HOLD_MS + LEASE_MS + SLACK_MS &&
           lock_raw_integer(w, "EXISTS lock:user:1") == 1) {
        fixture_pause_ms(10);
        ll_progress(w->la);
    }
    assert_in_range(ll_now_ms() - start_ms, HOLD_MS, HOLD_MS + LEASE_MS + SLACK_MS);
    assert_int_equal(told.times, 1);
    assert_int_equal(told.code, LL_GONE);
    assert_true(told.least_left_ms > 0);
    assert_int_equal(read_losses(r, LOCK_SOON_MS), 1);
}

LOCK_CASE(progress_before_the_lease_ran_out_is_renewed_again)
{
    enum { LONG_MS = 10000 };

    struct told told = {0};
    RENEWER *r = open_renewer(w->a, &told, 50);

    assert_int_equal(ll_try(w->la, "user:1", LONG_MS), LL_OK);
    assert_int_equal(ll_renew(r, w->la, 100, 60000), LL_OK);
    LOCK_AWAIT(!ll_valid(w->la, LONG_MS - 1000)); /* it is not renewed any more */
    LOCK_AWAIT((ll_progress(w->la), ll_valid(w->la, LONG_MS - 1000)));
    assert_int_equal(ll_release(w->la), LL_OK);
    assert_int_equal(told.times, 0);
}

static int child_of_a_holder(struct lock_world *w, struct ll_renewer *r)
{
    bool ok = ll_renew(r, w->lb, 0, 0) == LL_E_FORKED;

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
