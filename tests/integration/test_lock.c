/* The lock library against a real redis-server: tenures, batches, other clients. */
#include "tests/lib/lock_world.h"

#include <stdio.h>
#include <string.h>

#include "lua_gen.h"

static void keys_of(struct ll_key *keys, char names[][16], size_t from, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        keys[i].name = names[i];
        keys[i].len = (size_t)snprintf(names[i], 16, "k:%zu", from + i);
    }
}

/* ---- one key ---- */

static void try_free_key_is_granted_and_always_has_a_ttl(void **state)
{
    struct lock_world *w = *state;
    long long ttl;

    assert_int_equal(ll_try(w->la, "user:1", 5000), LL_OK);
    ttl = lock_raw_integer(w, "PTTL lock:user:1");
    assert_in_range(ttl, 4000, 5000);
    assert_true(ll_valid(w->la, 0));
    assert_false(ll_valid(w->la, 5000));
}

static void try_held_key_is_busy_and_tells_the_time_left(void **state)
{
    struct lock_world *w = *state;

    assert_int_equal(ll_try(w->la, "user:1", 5000), LL_OK);
    assert_int_equal(ll_try(w->lb, "user:1", 5000), LL_BUSY);
    assert_in_range(ll_key_busy_ms(w->lb, 0), 4000, 5000);
    assert_int_equal(ll_token(w->lb), 0);
    assert_int_equal(ll_release(w->la), LL_OK);
    assert_int_equal(ll_try(w->lb, "user:1", 5000), LL_OK);
}

static void token_of_every_tenure_is_higher_than_all_before(void **state)
{
    struct lock_world *w = *state;
    int64_t last = 0;

    for (int i = 0; i < 50; i++) {
        struct ll_lock *l = i % 2 == 0 ? w->la : w->lb;

        assert_int_equal(ll_try(l, "user:1", 5000), LL_OK);
        assert_true(ll_token(l) > last);
        last = ll_token(l);
        assert_int_equal(ll_release(l), LL_OK);
    }
    assert_true(last > INT64_C(1) << 40);
}

static void release_any_number_of_times_gives_the_same_answer(void **state)
{
    struct lock_world *w = *state;

    assert_int_equal(ll_try(w->la, "user:1", 5000), LL_OK);
    for (int i = 0; i < 3; i++)
        assert_int_equal(ll_release(w->la), LL_OK);
    assert_int_equal(lock_raw_integer(w, "EXISTS lock:user:1"), 0);
    assert_false(ll_valid(w->la, 0));
}

static void release_after_expiry_reports_gone(void **state)
{
    struct lock_world *w = *state;

    assert_int_equal(ll_try(w->la, "user:1", 30), LL_OK);
    fixture_pause_ms(60);
    assert_false(ll_valid(w->la, 0));
    assert_int_equal(ll_release(w->la), LL_GONE);
    assert_int_equal(ll_release(w->la), LL_GONE);
}

static void release_after_takeover_reports_not_owner_and_releases_nothing(void **state)
{
    struct lock_world *w = *state;

    assert_int_equal(ll_try(w->la, "user:1", 30), LL_OK);
    fixture_pause_ms(60);
    assert_int_equal(ll_try(w->lb, "user:1", 5000), LL_OK);
    assert_int_equal(ll_release(w->la), LL_NOT_OWNER);
    assert_int_equal(lock_raw_integer(w, "EXISTS lock:user:1"), 1);
    assert_int_equal(ll_release(w->lb), LL_OK);
}

static void zero_lease_and_reserved_name_are_refused(void **state)
{
    struct lock_world *w = *state;

    assert_int_equal(ll_try(w->la, "user:1", 0), LL_E_INVAL);
    assert_int_equal(ll_try(w->la, "!fence", 1000), LL_E_INVAL);
    assert_int_equal(ll_try(w->la, "", 1000), LL_E_INVAL);
}

/* ---- other clients ---- */

static void plain_set_nx_px_excludes_and_is_excluded(void **state)
{
    struct lock_world *w = *state;
    redisReply *reply;

    lock_raw_do(w, "SET lock:user:1 somebody NX PX 5000");
    assert_int_equal(ll_try(w->la, "user:1", 5000), LL_BUSY);
    assert_int_equal(ll_try(w->la, "user:2", 5000), LL_OK);
    reply = redisCommand(w->raw, "SET lock:user:2 somebody NX PX 5000");
    assert_int_equal(reply->type, REDIS_REPLY_NIL);
    freeReplyObject(reply);
}

static void key_of_another_type_is_busy_and_left_alone(void **state)
{
    struct lock_world *w = *state;

    lock_raw_do(w, "HSET lock:user:1 owner somebody");
    assert_int_equal(ll_try(w->la, "user:1", 5000), LL_BUSY);
    assert_int_equal(ll_key_busy_ms(w->la, 0), -1);
    assert_int_equal(lock_raw_integer(w, "HLEN lock:user:1"), 1);
}

/* ---- batches ---- */

static void any_takes_the_free_keys_and_names_the_busy_ones(void **state)
{
    struct lock_world *w = *state;
    struct ll_key keys[300];
    char names[300][16];

    keys_of(keys, names, 0, 40);
    assert_int_equal(ll_acquire(w->lb, keys, 40, LL_ANY, 5000), LL_OK);
    keys_of(keys, names, 0, 300);
    assert_int_equal(ll_acquire(w->la, keys, 300, LL_ANY, 5000), LL_PARTIAL);
    assert_int_equal(ll_granted(w->la), 260);
    for (size_t i = 0; i < 300; i++)
        assert_int_equal(ll_key_code(w->la, i), i < 40 ? LL_BUSY : LL_OK);
    assert_int_equal(ll_release(w->la), LL_OK);
    assert_int_equal(lock_raw_integer(w, "DBSIZE"), 41); /* 40 of b and the record */
}

static void any_with_every_key_busy_is_busy_and_mints_no_token(void **state)
{
    struct lock_world *w = *state;
    struct ll_key keys[10];
    char names[10][16];
    long long before;

    keys_of(keys, names, 0, 10);
    assert_int_equal(ll_acquire(w->lb, keys, 10, LL_ANY, 5000), LL_OK);
    before = lock_raw_integer(w, "HINCRBY lock:!fence n 0");
    assert_int_equal(ll_acquire(w->la, keys, 10, LL_ANY, 5000), LL_BUSY);
    assert_int_equal(lock_raw_integer(w, "HINCRBY lock:!fence n 0"), before);
}

static void all_with_one_key_busy_takes_none(void **state)
{
    struct lock_world *w = *state;
    struct ll_key keys[300];
    char names[300][16];

    assert_int_equal(ll_try(w->lb, "k:299", 5000), LL_OK);
    keys_of(keys, names, 0, 300);
    assert_int_equal(ll_acquire(w->la, keys, 300, LL_ALL, 5000), LL_BUSY);
    assert_int_equal(ll_granted(w->la), 0);
    assert_int_equal(lock_raw_integer(w, "DBSIZE"), 2);
    lock_raw_do(w, "DEL lock:k:299");
    lock_raw_do(w, "RPUSH lock:k:150 x"); /* reads as nothing, still is not ours */
    assert_int_equal(ll_acquire(w->la, keys, 300, LL_ALL, 5000), LL_BUSY);
    assert_int_equal(lock_raw_integer(w, "DBSIZE"), 2);
}

static void more_than_a_thousand_keys_are_taken_in_chunks(void **state)
{
    struct lock_world *w = *state;
    static struct ll_key keys[2 * LL_KEYS_MAX + 1];
    static char names[2 * LL_KEYS_MAX + 1][16];
    size_t n = 2 * LL_KEYS_MAX + 1;

    keys_of(keys, names, 0, n);
    assert_int_equal(ll_acquire(w->la, keys, n, LL_ALL, 5000), LL_OK);
    assert_int_equal(lock_raw_integer(w, "DBSIZE"), n + 1);
    assert_true(ll_key_token(w->la, n - 1) > ll_key_token(w->la, 0));
    assert_int_equal(ll_release(w->la), LL_OK);
    assert_int_equal(lock_raw_integer(w, "DBSIZE"), 1);
    assert_int_equal(ll_try(w->lb, "k:2000", 5000), LL_OK); /* in the last chunk */
    assert_int_equal(ll_acquire(w->la, keys, n, LL_ALL, 5000), LL_BUSY);
    assert_int_equal(lock_raw_integer(w, "DBSIZE"), 2);
    assert_int_equal(ll_acquire(w->la, keys, n, LL_ANY, 5000), LL_PARTIAL);
    assert_int_equal(ll_granted(w->la), n - 1);
}

/* The scripts themselves: what a repeated command gets. */
static void same_nonce_again_gets_the_same_grant(void **state)
{
    struct lock_world *w = *state;
    char ident[100];
    redisReply *reply = redisCommand(w->raw, "HGET lock:!fence ident");
    char token[2][32];

    (void)snprintf(ident, sizeof ident, "%s", reply->str);
    freeReplyObject(reply);
    for (int i = 0; i < 2; i++) {
        reply = redisCommand(
            w->raw,
            "EVAL %s 3 lock:!fence lock:a lock:b nonce1 5000 %s 9999999999999 any",
            (const char *)lua_texts[LUA_ACQUIRE].text, ident);
        assert_int_equal(reply->type, REDIS_REPLY_ARRAY);
        assert_string_equal(reply->element[0]->str, "ok");
        (void)snprintf(token[i], sizeof token[i], "%s", reply->element[1]->str);
        freeReplyObject(reply);
    }
    assert_string_equal(token[0], token[1]);
    assert_int_equal(lock_raw_integer(w, "HINCRBY lock:!fence n 0"), 1);
}

static void command_that_runs_too_late_grants_nothing(void **state)
{
    struct lock_world *w = *state;
    redisReply *reply =
        redisCommand(w->raw, "EVAL %s 2 lock:!fence lock:a nonce1 5000 x 1000 any",
                     (const char *)lua_texts[LUA_ACQUIRE].text);

    assert_string_equal(reply->element[0]->str, "late");
    freeReplyObject(reply);
    assert_int_equal(lock_raw_integer(w, "EXISTS lock:a"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOCK_TEST(try_free_key_is_granted_and_always_has_a_ttl),
        LOCK_TEST(try_held_key_is_busy_and_tells_the_time_left),
        LOCK_TEST(token_of_every_tenure_is_higher_than_all_before),
        LOCK_TEST(release_any_number_of_times_gives_the_same_answer),
        LOCK_TEST(release_after_expiry_reports_gone),
        LOCK_TEST(release_after_takeover_reports_not_owner_and_releases_nothing),
        LOCK_TEST(zero_lease_and_reserved_name_are_refused),
        LOCK_TEST(plain_set_nx_px_excludes_and_is_excluded),
        LOCK_TEST(key_of_another_type_is_busy_and_left_alone),
        LOCK_TEST(any_takes_the_free_keys_and_names_the_busy_ones),
        LOCK_TEST(any_with_every_key_busy_is_busy_and_mints_no_token),
        LOCK_TEST(all_with_one_key_busy_takes_none),
        LOCK_TEST(more_than_a_thousand_keys_are_taken_in_chunks),
        LOCK_TEST(same_nonce_again_gets_the_same_grant),
        LOCK_TEST(command_that_runs_too_late_grants_nothing),
    };

    fixture_need_servers();
    return cmocka_run_group_tests(tests, lock_start_server, lock_stop_server);
}
