/* Renewal and its holder: re-entrance, progress, the longest hold, fork. */
#include "tests/lib/renew_world.h"

enum { LEASE_MS = 600 };

static void reentrant_lock_is_renewed_until_the_outermost_release(void **state)
{
    struct lock_world *w = *state;
    struct told told = {0};
    struct ll_renewer *r = open_renewer(w->a, &told, 0);

    ll_set_reentrant(w->la, true);
    assert_int_equal(ll_try(w->la, "user:1", LEASE_MS), LL_OK);
    assert_int_equal(ll_renew(r, w->la, 0, 0), LL_OK);
    assert_int_equal(ll_try(w->la, "user:1", LEASE_MS), LL_OK);
    fixture_pause_ms(LEASE_MS + 100);
    assert_int_equal(ll_release(w->la), LL_OK);
    assert_int_equal(ll_holds(w->la), 1);
    fixture_pause_ms(LEASE_MS + 100);
    assert_true(ll_valid(w->la, 0));
    assert_int_equal(ll_release(w->la), LL_OK);
    assert_int_equal(lock_raw_integer(w, "EXISTS lock:user:1"), 0);
    assert_int_equal(told.times, 0);
    ll_renewer_close(r);
}

static void watchdog_stops_without_progress(void **state)
{
    enum { STALL_MS = 500 };

    struct lock_world *w = *state;
    struct told told = {0};
    struct ll_renewer *r = open_renewer(w->a, &told, 0);
    int64_t fed_ms = 0;

    assert_int_equal(ll_try(w->la, "user:1", LEASE_MS), LL_OK);
    assert_int_equal(ll_renew(r, w->la, STALL_MS, 60000), LL_OK);
    for (int i = 0; i < 12; i++) { /* goes on past stall and lease */
        fixture_pause_ms(100);
        ll_progress(w->la);
        fed_ms = ll_now_ms();
        assert_true(ll_valid(w->la, 0));
    }
    fixture_pause_ms(STALL_MS - 100);
    assert_true(ll_valid(w->la, 0)); /* it stays ours until its lease has run out */
    assert_int_equal(read_losses(r, 2 * LEASE_MS), 1);
    assert_int_equal(lock_raw_integer(w, "EXISTS lock:user:1"), 1);
    assert_false(ll_valid(w->la, 0));
    while (ll_now_ms() - fed_ms <= STALL_MS + LEASE_MS + 50 &&
           lock_raw_integer(w, "EXISTS lock:user:1") == 1)
        fixture_pause_ms(5);
    assert_true(ll_now_ms() - fed_ms <= STALL_MS + LEASE_MS + 50);
    assert_int_equal(told.times, 1);
    assert_int_equal(told.code, LL_GONE);
    ll_progress(w->la); /* too late */
    fixture_pause_ms(LEASE_MS);
    assert_int_equal(lock_raw_integer(w, "EXISTS lock:user:1"), 0);
    assert_int_equal(read_losses(r, 0) + told.times, 1);
    ll_renewer_close(r);
}

static void watchdog_stops_at_max_hold_whatever_progress(void **state)
{
    enum { HOLD_MS = 900 };

    struct lock_world *w = *state;
    struct told told = {0};
    struct ll_renewer *r = open_renewer(w->a, &told, 0);
    int64_t start_ms = ll_now_ms();

    assert_int_equal(ll_try(w->la, "user:1", LEASE_MS), LL_OK);
    assert_int_equal(ll_renew(r, w->la, 300, HOLD_MS), LL_OK);
    while (ll_now_ms() - start_ms <= HOLD_MS + LEASE_MS + 50 &&
           lock_raw_integer(w, "EXISTS lock:user:1") == 1) {
        fixture_pause_ms(10);
        ll_progress(w->la);
    }
    assert_in_range(ll_now_ms() - start_ms, HOLD_MS, HOLD_MS + LEASE_MS + 50);
    assert_int_equal(told.times, 1);
    assert_int_equal(told.code, LL_GONE);
    assert_true(told.least_left_ms > 0);
    assert_int_equal(read_losses(r, 0), 1);
    ll_renewer_close(r);
}

static void progress_before_the_lease_ran_out_is_renewed_again(void **state)
{
    struct lock_world *w = *state;
    struct told told = {0};
    struct ll_renewer *r = open_renewer(w->a, &told, 50);

    assert_int_equal(ll_try(w->la, "user:1", LEASE_MS), LL_OK);
    assert_int_equal(ll_renew(r, w->la, 100, 60000), LL_OK);
    fixture_pause_ms(300);
    assert_false(ll_valid(w->la, LEASE_MS - 150)); /* for a while it was not renewed */
    ll_progress(w->la);
    fixture_pause_ms(70);
    assert_true(ll_valid(w->la, LEASE_MS - 150));
    assert_int_equal(ll_release(w->la), LL_OK);
    assert_int_equal(told.times, 0);
    ll_renewer_close(r);
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

static void child_of_fork_neither_renews_nor_disturbs_the_parent(void **state)
{
    struct lock_world *w = *state;
    struct told told = {0};
    struct ll_renewer *r = open_renewer(w->a, &told, 1);

    assert_int_equal(ll_try(w->la, "user:1", LEASE_MS), LL_OK);
    assert_int_equal(ll_try(w->lb, "user:2", LEASE_MS), LL_OK);
    assert_int_equal(ll_renew(r, w->la, 0, 0), LL_OK);
    for (int i = 0; i < 50; i++) { /* renewed every ms: some forks hit it at work */
        pid_t pid = fork();

        if (pid == 0)
            _exit(child_of_a_holder(w, r));
        assert_int_equal(fixture_reap(pid, 10), 0);
        assert_true(ll_valid(w->la, 0));
    }
    fixture_pause_ms(LEASE_MS);
    assert_int_equal(ll_release(w->la), LL_OK);
    assert_int_equal(told.times, 0);
    ll_renewer_close(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOCK_TEST(reentrant_lock_is_renewed_until_the_outermost_release),
        LOCK_TEST(watchdog_stops_without_progress),
        LOCK_TEST(watchdog_stops_at_max_hold_whatever_progress),
        LOCK_TEST(progress_before_the_lease_ran_out_is_renewed_again),
        LOCK_TEST(child_of_fork_neither_renews_nor_disturbs_the_parent),
    };

    fixture_need_servers();
    return cmocka_run_group_tests(tests, lock_start_server, lock_stop_server);
}
