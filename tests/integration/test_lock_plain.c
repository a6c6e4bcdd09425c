/* The lock library on a server where scripts are forbidden: the same scenarios. */
#include "tests/lib/lock_world.h"

#include <stdio.h>

static const struct ll_key abc[] = {{"a", 1}, {"b", 1}, {"c", 1}};

/* ---- one key ---- */

static void scripts_are_really_forbidden_here(void **state)
{
    struct lock_world *w = *state;
    redisReply *reply = redisCommand(w->raw, "EVAL %s 0", "return 1");
    struct ll_client *c = lock_client(lock_server.url, 0);

    assert_int_equal(reply->type, REDIS_REPLY_ERROR);
    freeReplyObject(reply);
    assert_int_equal(ll_connect(c), LL_E_AUTH);
    ll_close(c);
}

static void plain_key_is_granted_busy_and_free_again(void **state)
{
    struct lock_world *w = *state;
    int64_t token;

    assert_int_equal(ll_try(w->la, "user:1", 5000), LL_OK);
    assert_in_range(lock_raw_integer(w, "PTTL lock:user:1"), 4000, 5000);
    token = ll_token(w->la);
    assert_true(token > INT64_C(1) << 40);
    assert_int_equal(ll_try(w->lb, "user:1", 5000), LL_BUSY);
    assert_in_range(ll_key_busy_ms(w->lb, 0), 4000, 5000);
    for (int i = 0; i < 3; i++)
        assert_int_equal(ll_release(w->la), LL_OK);
    assert_int_equal(ll_try(w->lb, "user:1", 5000), LL_OK);
    assert_true(ll_token(w->lb) > token);
}

static void plain_release_tells_gone_and_not_owner(void **state)
{
    struct lock_world *w = *state;

    assert_int_equal(ll_try(w->la, "user:1", 30), LL_OK);
    fixture_pause_ms(60);
    assert_int_equal(ll_release(w->la), LL_GONE);
    assert_int_equal(ll_release(w->la), LL_GONE);
    assert_int_equal(ll_try(w->la, "user:1", 30), LL_OK);
    fixture_pause_ms(60);
    assert_int_equal(ll_try(w->lb, "user:1", 5000), LL_OK);
    assert_int_equal(ll_release(w->la), LL_NOT_OWNER);
    assert_int_equal(lock_raw_integer(w, "EXISTS lock:user:1"), 1);
}

static void plain_extend_lengthens_only_what_is_ours(void **state)
{
    struct lock_world *w = *state;
    int64_t left_ms;

    assert_int_equal(ll_acquire(w->la, abc, 3, LL_ALL, 5000), LL_OK);
    assert_int_equal(ll_extend(w->la, 9000), LL_OK);
    assert_in_range(lock_raw_integer(w, "PTTL lock:b"), 8000, 9000);
    assert_int_equal(ll_extend(w->la, 100), LL_OK);
    assert_in_range(lock_raw_integer(w, "PTTL lock:b"), 8000, 9000);
    assert_int_equal(ll_verify(w->la, &left_ms), LL_OK);
    lock_raw_do(w, "DEL lock:b");
    assert_int_equal(ll_extend(w->la, 20000), LL_LOST);
    assert_int_equal(lock_raw_integer(w, "EXISTS lock:b"), 0);
    assert_in_range(lock_raw_integer(w, "PTTL lock:a"), 8000, 9000);
    assert_int_equal(ll_release(w->la), LL_GONE);
    assert_int_equal(ll_key_code(w->la, 0), LL_OK);
    assert_int_equal(ll_key_code(w->la, 1), LL_GONE);
}

static void plain_wait_polls(void **state)
{
    struct lock_world *w = *state;
    struct ll_key key = {"user:1", 6};

    assert_int_equal(ll_try(w->la, "user:1", 300), LL_OK);
    assert_int_equal(ll_acquire_wait(w->lb, &key, 1, LL_ALL, 5000, 100), LL_TIMEOUT);
    assert_int_equal(ll_acquire_wait(w->lb, &key, 1, LL_ALL, 5000, 2000), LL_OK);
}

/* ---- batches ---- */

static void plain_any_takes_the_free_ones(void **state)
{
    struct lock_world *w = *state;

    assert_int_equal(ll_try(w->lb, "b", 5000), LL_OK);
    assert_int_equal(ll_acquire(w->la, abc, 3, LL_ANY, 5000), LL_PARTIAL);
    assert_int_equal(ll_granted(w->la), 2);
    assert_int_equal(ll_key_code(w->la, 1), LL_BUSY);
    assert_in_range(ll_key_busy_ms(w->la, 1), 4000, 5000);
    assert_int_equal(ll_release(w->la), LL_OK);
    assert_int_equal(lock_raw_integer(w, "DBSIZE"), 2);
    assert_int_equal(ll_acquire(w->lb, abc, 0, LL_ANY, 5000), LL_E_INVAL);
}

static void plain_all_takes_none_when_one_is_busy(void **state)
{
    struct lock_world *w = *state;
    long long minted;

    assert_int_equal(ll_try(w->lb, "c", 5000), LL_OK);
    minted = lock_raw_integer(w, "HINCRBY lock:!fence n 0");
    assert_int_equal(ll_acquire(w->la, abc, 3, LL_ALL, 5000), LL_BUSY);
    assert_int_equal(ll_granted(w->la), 0);
    assert_int_equal(lock_raw_integer(w, "DBSIZE"), 2);
    assert_int_equal(lock_raw_integer(w, "HINCRBY lock:!fence n 0"), minted);
    lock_raw_do(w, "DEL lock:c");
    lock_raw_do(w, "RPUSH lock:b x"); /* reads as nothing, still is not ours */
    assert_int_equal(ll_acquire(w->la, abc, 3, LL_ALL, 5000), LL_BUSY);
    assert_int_equal(lock_raw_integer(w, "EXISTS lock:a lock:c"), 0);
}

static void plain_batch_of_more_than_a_thousand_goes_in_chunks(void **state)
{
    struct lock_world *w = *state;
    static struct ll_key keys[LL_KEYS_MAX + 200];
    static char names[LL_KEYS_MAX + 200][16];
    size_t n = LL_KEYS_MAX + 200;

    for (size_t i = 0; i < n; i++) {
        keys[i].name = names[i];
        keys[i].len = (size_t)snprintf(names[i], sizeof names[i], "k:%zu", i);
    }
    assert_int_equal(ll_acquire(w->la, keys, n, LL_ALL, 5000), LL_OK);
    assert_int_equal(lock_raw_integer(w, "DBSIZE"), n + 1);
    assert_int_equal(ll_extend(w->la, 9000), LL_OK);
    assert_int_equal(ll_release(w->la), LL_OK);
    assert_int_equal(lock_raw_integer(w, "DBSIZE"), 1);
}

/* ---- epoch ---- */

static void plain_epoch_replaces_only_a_lower_one(void **state)
{
    struct lock_world *w = *state;
    int64_t current, before;

    assert_int_equal(ll_try(w->la, "user:1", 5000), LL_OK);
    before = ll_token(w->la);
    lock_raw_do(w, "FLUSHALL");
    assert_int_equal(ll_try(w->lb, "user:1", 5000), LL_E_EPOCH);
    assert_int_equal(ll_check_epoch(w->b, &current), LL_E_EPOCH);
    assert_int_equal(current, 0);
    lock_install_epoch(w->b, 7);
    assert_int_equal(ll_install_epoch(w->a, 5, &current), LL_OK);
    assert_int_equal(current, 7);
    assert_int_equal(ll_try(w->lb, "user:1", 5000), LL_OK);
    assert_true(ll_token(w->lb) > before);
    lock_raw_do(w, "HSET lock:!fence ident other");
    assert_int_equal(ll_install_epoch(w->b, 6, &current), LL_E_EPOCH);
    assert_int_equal(ll_install_epoch(w->b, 8, &current), LL_OK);
    assert_int_equal(ll_check_epoch(w->b, &current), LL_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PLAIN_TEST(scripts_are_really_forbidden_here),
        PLAIN_TEST(plain_key_is_granted_busy_and_free_again),
        PLAIN_TEST(plain_release_tells_gone_and_not_owner),
        PLAIN_TEST(plain_extend_lengthens_only_what_is_ours),
        PLAIN_TEST(plain_wait_polls),
        PLAIN_TEST(plain_any_takes_the_free_ones),
        PLAIN_TEST(plain_all_takes_none_when_one_is_busy),
        PLAIN_TEST(plain_batch_of_more_than_a_thousand_goes_in_chunks),
        PLAIN_TEST(plain_epoch_replaces_only_a_lower_one),
    };

    fixture_need_servers();
    return cmocka_run_group_tests(tests, lock_start_plain_server, lock_stop_server);
}
