/* Waiting for one lock: wake-ups, how long, several keys. */
#include "tests/lib/lock_waiters.h"

#include <stdlib.h>
#include <string.h>

static int take_one(struct ll_lock *l, const char *name, unsigned wait_ms)
{
    struct ll_key key = {name, strlen(name)};

    return ll_acquire_wait(l, &key, 1, LL_ALL, 5000, wait_ms);
}

/* ---- wake-ups ---- */

static void release_wakes_one_waiter_at_once(void **state)
{
    struct lock_world *w = *state;
    struct waiter *waiters;
    int64_t before;

    assert_int_equal(ll_try(w->la, "one", 60000), LL_OK);
    waiters = waiters_start(8, (struct waiter){.turns = 1, .wait_ms = 5000});
    fixture_pause_ms(60); /* below the shortest pause: all of them listen */
    lock_raw_do(w, "CONFIG RESETSTAT");
    before = waiters_now_us();
    assert_int_equal(ll_release(w->la), LL_OK);
    waiters_join(waiters, 8);
    assert_true(waiters_now_us() - before < 80000); /* 8 hand-overs, none by looking */
    assert_in_range(waiters_calls(w, "lpush"), 8, 9);
    assert_in_range(waiters_calls(w, "evalsha"), 17, 20);
    free(waiters);
}

static void release_without_waiters_pushes_nothing(void **state)
{
    struct lock_world *w = *state;

    lock_raw_do(w, "CONFIG RESETSTAT");
    assert_int_equal(ll_try(w->la, "one", 5000), LL_OK);
    assert_int_equal(ll_release(w->la), LL_OK);
    assert_int_equal(waiters_calls(w, "lpush"), 0);
    assert_int_equal(lock_raw_integer(w, "DBSIZE"), 1);
    assert_int_equal(ll_try(w->la, "one", 5000), LL_OK);
    assert_int_equal(take_one(w->lb, "one", 150), LL_TIMEOUT);
    for (int n = 0; n < 3; n++) { /* the waiter has gone: one wake-up, for later */
        assert_int_equal(ll_release(w->la), LL_OK);
        assert_int_equal(lock_raw_integer(w, "LLEN lock:!wake:one"), 1);
        assert_int_equal(ll_try(w->la, "one", 5000), LL_OK);
    }
    waiters_assert_ends(w);
}

static void wakeup_command_forbidden_is_no_fault(void **state)
{
    struct lock_world *w = *state;

    lock_raw_do(w, "ACL SETUSER default -blpop");
    assert_int_equal(ll_try(w->la, "one", 60000), LL_OK);
    assert_int_equal(take_one(w->lb, "one", 150), LL_TIMEOUT);
    assert_int_equal(ll_release(w->la), LL_OK);
    assert_int_equal(take_one(w->lb, "one", 150), LL_OK);
    lock_raw_do(w, "ACL SETUSER default +blpop");
}

/* ---- how long ---- */

static void wait_never_sleeps_past_the_holders_lease(void **state)
{
    struct lock_world *w = *state;

    for (int i = 0; i < 5; i++) {
        int64_t before = waiters_now_us();

        lock_raw_do(w, "SET lock:one somebody PX 40");
        assert_int_equal(take_one(w->la, "one", 5000), LL_OK);
        assert_in_range(waiters_now_us() - before, 38000, 75000);
        assert_int_equal(ll_release(w->la), LL_OK);
    }
}

static void wait_of_zero_is_one_attempt(void **state)
{
    struct lock_world *w = *state;

    assert_int_equal(take_one(w->la, "one", 0), LL_OK);
    assert_int_equal(take_one(w->lb, "one", 0), LL_TIMEOUT);
    assert_int_equal(ll_granted(w->lb), 0);
    assert_int_equal(lock_raw_integer(w, "DBSIZE"), 2); /* no marks */
}

static void wait_on_a_server_that_went_away_is_a_fault_not_a_timeout(void **state)
{
    struct fixture_redis own = {0};
    struct ll_client *c;
    struct ll_lock *l;

    (void)state;
    fixture_redis_start(&own, NULL);
    c = lock_client(own.url, 200);
    l = ll_new(c);
    assert_int_equal(ll_connect(c), LL_OK);
    fixture_redis_kill(&own);
    assert_int_equal(take_one(l, "one", 3000), LL_E_UNAVAILABLE);
    ll_free(l);
    ll_close(c);
    fixture_redis_close(&own);
}

/* ---- several keys ---- */

static void wait_any_takes_the_first_that_is_freed(void **state)
{
    struct lock_world *w = *state;
    struct ll_key keys[] = {{"one", 3}, {"two", 3}, {"three", 5}};
    struct waiter *other;

    assert_int_equal(ll_acquire(w->la, &keys[1], 2, LL_ALL, 60000), LL_OK);
    other = waiters_start(
        1, (struct waiter){.turns = 1, .wait_ms = 1000, .hold_us = 50000});
    fixture_pause_ms(30);
    assert_int_equal(ll_acquire_wait(w->lb, keys, 3, LL_ANY, 5000, 2000), LL_PARTIAL);
    assert_int_equal(ll_key_code(w->lb, 0), LL_OK);
    assert_int_equal(ll_granted(w->lb), 1);
    waiters_join(other, 1);
    free(other);
}

static void wait_all_holds_nothing_until_all_are_free(void **state)
{
    struct lock_world *w = *state;
    struct ll_key keys[] = {{"two", 3}, {"one", 3}};
    struct waiter *other;

    other = waiters_start(
        1, (struct waiter){.turns = 1, .wait_ms = 1000, .hold_us = 150000});
    fixture_pause_ms(30);
    assert_int_equal(ll_acquire_wait(w->lb, keys, 2, LL_ALL, 5000, 50), LL_TIMEOUT);
    assert_int_equal(lock_raw_integer(w, "EXISTS lock:two"), 0);
    assert_int_equal(ll_acquire_wait(w->lb, keys, 2, LL_ALL, 5000, 2000), LL_OK);
    assert_int_equal(ll_granted(w->lb), 2);
    waiters_join(other, 1);
    free(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOCK_TEST(release_wakes_one_waiter_at_once),
        LOCK_TEST(release_without_waiters_pushes_nothing),
        LOCK_TEST(wakeup_command_forbidden_is_no_fault),
        LOCK_TEST(wait_never_sleeps_past_the_holders_lease),
        LOCK_TEST(wait_of_zero_is_one_attempt),
        LOCK_TEST(wait_on_a_server_that_went_away_is_a_fault_not_a_timeout),
        LOCK_TEST(wait_any_takes_the_first_that_is_freed),
        LOCK_TEST(wait_all_holds_nothing_until_all_are_free),
    };

    fixture_need_servers();
    return cmocka_run_group_tests(tests, lock_start_server, lock_stop_server);
}
