/* One tenure from inside: re-entrance, tolerance, extend, verify, releasing a part. */
#include "tests/lib/lock_world.h"

#include <stdio.h>
#include <string.h>

#include "lua_gen.h"

static const struct ll_key abc[] = {{"a", 1}, {"b", 1}, {"c", 1}};

static int acquire_abc(struct ll_lock *l, uint32_t lease_ms)
{
    return ll_acquire(l, abc, 3, LL_ALL, lease_ms);
}

/* ---- re-entrance ---- */

static void reentrant_counts_refreshes_and_frees_with_the_outermost(void **state)
{
    struct lock_world *w = *state;
    int64_t token;

    ll_set_reentrant(w->la, true);
    assert_int_equal(ll_try(w->la, "user:1", 1000), LL_OK);
    token = ll_token(w->la);
    assert_int_equal(ll_try(w->la, "user:1", 5000), LL_OK);
    assert_int_equal(ll_try(w->la, "user:1", 5000), LL_OK);
    assert_int_equal(ll_holds(w->la), 3);
    assert_int_equal(ll_token(w->la), token);
    assert_in_range(lock_raw_integer(w, "PTTL lock:user:1"), 4000, 5000);
    assert_true(ll_valid(w->la, 3000));
    for (unsigned left = 2; left > 0; left--) {
        assert_int_equal(ll_release(w->la), LL_OK);
        assert_int_equal(ll_holds(w->la), left);
        assert_int_equal(ll_try(w->lb, "user:1", 5000), LL_BUSY);
    }
    assert_int_equal(ll_release(w->la), LL_OK);
    assert_int_equal(ll_holds(w->la), 0);
    assert_int_equal(ll_try(w->lb, "user:1", 5000), LL_OK);
}

static void reentrant_with_other_keys_is_refused(void **state)
{
    struct lock_world *w = *state;

    ll_set_reentrant(w->la, true);
    assert_int_equal(acquire_abc(w->la, 5000), LL_OK);
    assert_int_equal(ll_acquire(w->la, abc, 2, LL_ALL, 5000), LL_E_INVAL);
    assert_int_equal(ll_try(w->la, "a", 5000), LL_E_INVAL);
    assert_int_equal(ll_holds(w->la), 1);
    assert_int_equal(acquire_abc(w->la, 5000), LL_OK);
    assert_int_equal(ll_holds(w->la), 2);
}

static void reentrant_after_loss_reports_lost(void **state)
{
    struct lock_world *w = *state;

    ll_set_reentrant(w->la, true);
    assert_int_equal(ll_try(w->la, "user:1", 5000), LL_OK);
    lock_raw_do(w, "DEL lock:user:1");
    assert_int_equal(ll_try(w->la, "user:1", 5000), LL_LOST);
    assert_int_equal(ll_holds(w->la), 1);
    assert_false(ll_valid(w->la, 0));
    assert_int_equal(lock_raw_integer(w, "EXISTS lock:user:1"), 0);
    assert_int_equal(ll_release(w->la), LL_GONE);
    assert_int_equal(ll_try(w->la, "user:1", 5000), LL_OK);
}

static void not_reentrant_second_acquire_is_refused(void **state)
{
    struct lock_world *w = *state;

    assert_int_equal(ll_try(w->la, "user:1", 5000), LL_OK);
    assert_int_equal(ll_try(w->la, "user:1", 5000), LL_E_INVAL);
    assert_int_equal(ll_holds(w->la), 1);
    assert_true(ll_valid(w->la, 0));
}

/* A lock object that is not re-entrant is refused by another one of the same client. */
static void same_client_with_another_lock_is_busy(void **state)
{
    struct lock_world *w = *state;
    struct ll_lock *second = ll_new(w->a);

    ll_set_reentrant(second, true);
    assert_int_equal(ll_try(w->la, "user:1", 5000), LL_OK);
    assert_int_equal(ll_try(second, "user:1", 5000), LL_BUSY);
    ll_free(second);
}

/* ---- tolerance ---- */

static void tolerance_lets_the_key_outlive_what_we_count_on(void **state)
{
    struct lock_world *w = *state;

    ll_set_tolerance(w->la, 3000);
    assert_int_equal(ll_try(w->la, "user:1", 50), LL_OK);
    assert_in_range(lock_raw_integer(w, "PTTL lock:user:1"), 2500, 3050);
    assert_false(ll_valid(w->la, 50));
    fixture_pause_ms(70);
    assert_false(ll_valid(w->la, 0));
    assert_int_equal(ll_try(w->lb, "user:1", 5000), LL_BUSY);
    assert_int_equal(ll_extend(w->la, 1000), LL_OK); /* nobody came between */
    assert_true(ll_valid(w->la, 0));
    assert_in_range(lock_raw_integer(w, "PTTL lock:user:1"), 3500, 4000);
    assert_int_equal(ll_release(w->la), LL_OK);
}

/* ---- extend and verify ---- */

static void extend_lengthens_from_now_and_never_shortens(void **state)
{
    struct lock_world *w = *state;

    assert_int_equal(ll_try(w->la, "user:1", 5000), LL_OK);
    assert_int_equal(ll_extend(w->la, 9000), LL_OK);
    assert_in_range(lock_raw_integer(w, "PTTL lock:user:1"), 8000, 9000);
    assert_true(ll_valid(w->la, 8000));
    assert_int_equal(ll_extend(w->la, 100), LL_OK);
    assert_in_range(lock_raw_integer(w, "PTTL lock:user:1"), 8000, 9000);
    assert_true(ll_valid(w->la, 8000));
    assert_int_equal(ll_extend(w->la, 0), LL_E_INVAL);
}

static void extend_after_loss(void **state)
{
    struct lock_world *w = *state;

    assert_int_equal(ll_try(w->la, "user:1", 5000), LL_OK);
    lock_raw_do(w, "DEL lock:user:1");
    assert_int_equal(ll_extend(w->la, 5000), LL_LOST);
    assert_int_equal(lock_raw_integer(w, "EXISTS lock:user:1"), 0);
    assert_false(ll_valid(w->la, 0));
    assert_int_equal(ll_extend(w->la, 5000), LL_LOST);
    assert_int_equal(ll_release(w->la), LL_GONE);

    assert_int_equal(ll_try(w->la, "user:2", 30), LL_OK);
    fixture_pause_ms(60);
    assert_int_equal(ll_extend(w->la, 5000), LL_LOST);
    assert_int_equal(lock_raw_integer(w, "EXISTS lock:user:2"), 0);
}

static void extend_after_takeover_leaves_the_new_holder_alone(void **state)
{
    struct lock_world *w = *state;

    assert_int_equal(ll_try(w->la, "user:1", 30), LL_OK);
    fixture_pause_ms(60);
    assert_int_equal(ll_try(w->lb, "user:1", 2000), LL_OK);
    assert_int_equal(ll_extend(w->la, 60000), LL_LOST);
    assert_in_range(lock_raw_integer(w, "PTTL lock:user:1"), 1000, 2000);
    assert_int_equal(ll_release(w->la), LL_NOT_OWNER);
    assert_true(ll_valid(w->lb, 0));
}

static void extend_of_a_batch_is_lost_when_one_key_is(void **state)
{
    struct lock_world *w = *state;

    assert_int_equal(acquire_abc(w->la, 5000), LL_OK);
    lock_raw_do(w, "DEL lock:b");
    assert_int_equal(ll_extend(w->la, 5000), LL_LOST);
    assert_int_equal(ll_release(w->la), LL_GONE);
    assert_int_equal(ll_key_code(w->la, 0), LL_OK);
    assert_int_equal(ll_key_code(w->la, 1), LL_GONE);
    assert_int_equal(ll_key_code(w->la, 2), LL_OK);
}

static void extend_of_what_is_not_held_is_refused(void **state)
{
    struct lock_world *w = *state;
    int64_t left_ms;

    assert_int_equal(ll_extend(w->la, 5000), LL_E_INVAL);
    assert_int_equal(ll_try(w->la, "user:1", 5000), LL_OK);
    assert_int_equal(ll_release(w->la), LL_OK);
    assert_int_equal(ll_extend(w->la, 5000), LL_E_INVAL);
    assert_int_equal(ll_verify(w->la, &left_ms), LL_E_INVAL);
    assert_int_equal(lock_raw_integer(w, "EXISTS lock:user:1"), 0);
}

static void verify_tells_the_shortest_time_left_and_changes_nothing(void **state)
{
    struct lock_world *w = *state;
    int64_t left_ms;

    assert_int_equal(acquire_abc(w->la, 60000), LL_OK);
    lock_raw_do(w, "PEXPIRE lock:b 3000");
    assert_int_equal(ll_verify(w->la, &left_ms), LL_OK);
    assert_in_range(left_ms, 2000, 3000);
    assert_in_range(lock_raw_integer(w, "PTTL lock:b"), 2000, 3000);
    lock_raw_do(w, "SET lock:c somebody");
    assert_int_equal(ll_verify(w->la, &left_ms), LL_LOST);
    assert_false(ll_valid(w->la, 0));
}

/* PEXPIRE 0 is a deletion: looking at a key that has no end must not come to that. */
static void verify_of_a_key_without_an_end_leaves_it_alone(void **state)
{
    struct lock_world *w = *state;
    int64_t left_ms;

    assert_int_equal(ll_try(w->la, "user:1", 5000), LL_OK);
    lock_raw_do(w, "PERSIST lock:user:1");
    assert_int_equal(ll_verify(w->la, &left_ms), LL_OK);
    assert_int_equal(lock_raw_integer(w, "EXISTS lock:user:1"), 1);
    assert_int_equal(ll_extend(w->la, 5000), LL_OK); /* and it has an end again */
    assert_in_range(lock_raw_integer(w, "PTTL lock:user:1"), 4000, 5000);
}

/* ---- a repeated batch ---- */

/* The keys that somebody else held and gave back between the two runs of one command
 * may have seen a higher token since: they stay out of the tenure. */
static void repeated_any_batch_adds_no_key_under_its_old_token(void **state)
{
    struct lock_world *w = *state;
    redisReply *reply = redisCommand(w->raw, "HGET lock:!fence ident");
    char command[256];

    (void)snprintf(
        command, sizeof command,
        "EVALSHA %%s 3 lock:!fence lock:a lock:b n1 5000 %s 9999999999999 any",
        reply->str);
    freeReplyObject(reply);
    assert_int_equal(ll_try(w->lb, "b", 5000), LL_OK);
    reply = redisCommand(w->raw, "SCRIPT LOAD %s",
                         (const char *)lua_texts[LUA_ACQUIRE].text);
    for (int i = 0; i < 2; i++) { /* first busy, then free but too late */
        redisReply *answer = redisCommand(w->raw, command, reply->str);

        assert_string_equal(answer->element[0]->str, "ok");
        assert_int_equal(answer->elements, 4);
        assert_int_equal(answer->element[2]->integer, 2);
        freeReplyObject(answer);
        lock_raw_do(w, "DEL lock:b");
    }
    freeReplyObject(reply);
    assert_int_equal(lock_raw_integer(w, "EXISTS lock:b"), 0);
}

/* ---- a part ---- */

static void release_some_frees_these_and_keeps_the_rest(void **state)
{
    struct lock_world *w = *state;
    const size_t middle = 1;
    const size_t rest[] = {0, 2};

    assert_int_equal(acquire_abc(w->la, 5000), LL_OK);
    assert_int_equal(ll_release_some(w->la, &middle, 1), LL_OK);
    assert_int_equal(ll_granted(w->la), 2);
    assert_int_equal(ll_try(w->lb, "b", 5000), LL_OK);
    assert_true(ll_valid(w->la, 0));
    assert_int_equal(ll_extend(w->la, 9000), LL_OK); /* b is no part of it any more */
    assert_in_range(lock_raw_integer(w, "PTTL lock:b"), 4000, 5000);
    assert_int_equal(ll_release_some(w->la, &middle, 1), LL_E_INVAL);
    assert_int_equal(ll_release_some(w->la, rest, 2), LL_OK);
    assert_int_equal(ll_holds(w->la), 0);
    assert_int_equal(ll_release(w->la), LL_OK);
    assert_int_equal(lock_raw_integer(w, "EXISTS lock:a lock:b lock:c"), 1);
}

static void release_some_tells_what_was_lost(void **state)
{
    struct lock_world *w = *state;
    const size_t first[] = {0, 1};

    assert_int_equal(acquire_abc(w->la, 5000), LL_OK);
    lock_raw_do(w, "SET lock:a somebody");
    assert_int_equal(ll_release_some(w->la, first, 2), LL_NOT_OWNER);
    assert_int_equal(ll_granted(w->la), 1);
    assert_int_equal(lock_raw_integer(w, "EXISTS lock:a lock:b lock:c"), 2);
    assert_int_equal(ll_release(w->la), LL_OK);
    assert_int_equal(lock_raw_integer(w, "EXISTS lock:a lock:b lock:c"), 1);
}

/* ---- abandon ---- */

static void abandon_leaves_the_keys_to_their_lease(void **state)
{
    struct lock_world *w = *state;

    assert_int_equal(ll_try(w->la, "user:1", 200), LL_OK);
    ll_abandon(w->la);
    assert_int_equal(ll_holds(w->la), 0);
    assert_int_equal(ll_token(w->la), 0);
    assert_false(ll_valid(w->la, 0));
    assert_int_equal(ll_release(w->la), LL_GONE); /* nothing to release */
    assert_int_equal(ll_try(w->la, "user:1", 200), LL_BUSY);
    fixture_pause_ms(220);
    assert_int_equal(ll_try(w->la, "user:1", 200), LL_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOCK_TEST(reentrant_counts_refreshes_and_frees_with_the_outermost),
        LOCK_TEST(reentrant_with_other_keys_is_refused),
        LOCK_TEST(reentrant_after_loss_reports_lost),
        LOCK_TEST(not_reentrant_second_acquire_is_refused),
        LOCK_TEST(same_client_with_another_lock_is_busy),
        LOCK_TEST(tolerance_lets_the_key_outlive_what_we_count_on),
        LOCK_TEST(extend_lengthens_from_now_and_never_shortens),
        LOCK_TEST(extend_after_loss),
        LOCK_TEST(extend_after_takeover_leaves_the_new_holder_alone),
        LOCK_TEST(extend_of_a_batch_is_lost_when_one_key_is),
        LOCK_TEST(extend_of_what_is_not_held_is_refused),
        LOCK_TEST(verify_tells_the_shortest_time_left_and_changes_nothing),
        LOCK_TEST(verify_of_a_key_without_an_end_leaves_it_alone),
        LOCK_TEST(repeated_any_batch_adds_no_key_under_its_old_token),
        LOCK_TEST(release_some_frees_these_and_keeps_the_rest),
        LOCK_TEST(release_some_tells_what_was_lost),
        LOCK_TEST(abandon_leaves_the_keys_to_their_lease),
    };

    fixture_need_servers();
    return cmocka_run_group_tests(tests, lock_start_server, lock_stop_server);
}
