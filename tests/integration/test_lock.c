/* The lock library against a real redis-server: tenures on one key, other clients. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "tests/lib/lock_world.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lua_gen.h"

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

static void token_unique_and_increasing(void **state)
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

enum { PROCESSES = 4, TENURES = 200 };

/* What the processes share; only the holder writes. */
struct tokens {
    int64_t last;
    int count, wrong;
};

static int take_turns(struct tokens *t)
{
    const struct ll_key key = {"user:1", 6};
    struct ll_client *c = lock_client(lock_server.url, 0);
    struct ll_lock *l = ll_new(c);

    for (int i = 0; i < TENURES; i++) {
        if (ll_acquire_wait(l, &key, 1, LL_ALL, 20000, 60000) != LL_OK)
            return 1;
        t->wrong += ll_token(l) > t->last ? 0 : 1;
        t->last = ll_token(l);
        t->count++;
        if (ll_release(l) != LL_OK)
            return 1;
    }
    return 0;
}

static void token_unique_and_increasing_across_processes(void **state)
{
    struct tokens *t = mmap(NULL, sizeof *t, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t pids[PROCESSES];

    (void)state;
    for (int i = 0; i < PROCESSES; i++) {
        pids[i] = fork();
        if (pids[i] == 0)
            _exit(take_turns(t));
    }
    for (int i = 0; i < PROCESSES; i++)
        assert_int_equal(fixture_reap(pids[i], 60), 0);
    assert_int_equal(t->count, PROCESSES * TENURES);
    assert_int_equal(t->wrong, 0);
    assert_int_equal(t->last, (INT64_C(1) << 40) + PROCESSES * TENURES);
    (void)munmap(t, sizeof *t);
}

static void release_three_times(struct ll_lock *l, int code)
{
    for (int i = 0; i < 3; i++)
        assert_int_equal(ll_release(l), code);
    assert_false(ll_valid(l, 0));
}

static void release_idempotent(void **state)
{
    struct lock_world *w = *state;

    assert_int_equal(ll_try(w->la, "user:1", 5000), LL_OK);
    release_three_times(w->la, LL_OK);
    assert_int_equal(lock_raw_integer(w, "EXISTS lock:user:1"), 0);
    assert_int_equal(ll_try(w->lb, "user:1", 5000), LL_OK);
    release_three_times(w->la, LL_OK); /* and the next holder keeps it */
    assert_int_equal(lock_raw_integer(w, "EXISTS lock:user:1"), 1);
    assert_int_equal(ll_try(w->la, "user:2", 30), LL_OK);
    fixture_pause_ms(60);
    release_three_times(w->la, LL_GONE);
    assert_int_equal(ll_try(w->la, "user:3", 5000), LL_OK);
    lock_raw_do(w, "SET lock:user:3 somebody PX 5000");
    release_three_times(w->la, LL_NOT_OWNER);
    lock_raw_do(w, "DEL lock:user:3");
    release_three_times(w->la, LL_NOT_OWNER);
}

static void release_foreign_refused(void **state)
{
    struct lock_world *w = *state;
    int64_t left_ms;

    assert_int_equal(ll_try(w->la, "user:1", 30), LL_OK);
    fixture_pause_ms(60);
    assert_int_equal(ll_try(w->lb, "user:1", 5000), LL_OK);
    assert_int_equal(ll_release(w->la), LL_NOT_OWNER);
    assert_int_equal(ll_verify(w->lb, &left_ms), LL_OK);
    assert_in_range(left_ms, 3000, 5000);
    assert_int_equal(ll_release(w->lb), LL_OK);
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

/* ---- repeats ---- */

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
        LOCK_TEST(token_unique_and_increasing),
        LOCK_TEST(token_unique_and_increasing_across_processes),
        LOCK_TEST(release_idempotent),
        LOCK_TEST(release_after_expiry_reports_gone),
        LOCK_TEST(release_foreign_refused),
        LOCK_TEST(zero_lease_and_reserved_name_are_refused),
        LOCK_TEST(plain_set_nx_px_excludes_and_is_excluded),
        LOCK_TEST(key_of_another_type_is_busy_and_left_alone),
        LOCK_TEST(same_nonce_again_gets_the_same_grant),
        LOCK_TEST(command_that_runs_too_late_grants_nothing),
    };

    fixture_need_servers();
    return cmocka_run_group_tests(tests, lock_start_server, lock_stop_server);
}
