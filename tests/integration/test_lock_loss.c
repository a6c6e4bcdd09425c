/* What Redis held is lost: restarts, FLUSHALL, eviction, an operator, a holder that
 * dies. Tokens rise all the same, and the old holder learns. */
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "common/lock/internal.h"
#include "tests/lib/lock_world.h"

/* ---- all of it ---- */

/* Both clients find the epoch missing; it rises once. */
static void flushall_while_held(void **state)
{
    struct lock_world *w = *state;
    int64_t before, current, left_ms;

    assert_int_equal(ll_try(w->la, "user:1", 60000), LL_OK);
    before = ll_token(w->la);
    lock_raw_do(w, "FLUSHALL");
    assert_int_equal(ll_try(w->lb, "user:1", 5000), LL_E_EPOCH);
    assert_int_equal(lock_raw_integer(w, "DBSIZE"), 0);
    assert_int_equal(ll_check_epoch(w->b, &current), LL_E_EPOCH);
    assert_int_equal(current, 0);
    lock_install_epoch(w->b, 2);
    assert_int_equal(ll_install_epoch(w->a, 2, &current), LL_OK); /* finds it done */
    assert_int_equal(current, 2);
    assert_int_equal(ll_try(w->lb, "user:1", 5000), LL_OK);
    assert_int_equal(ll_token(w->lb), (INT64_C(2) << 40) + 1);
    assert_true(ll_token(w->lb) > before);
    assert_int_equal(ll_verify(w->la, &left_ms), LL_LOST);
    assert_int_equal(ll_release(w->la), LL_NOT_OWNER);
    assert_int_equal(ll_verify(w->lb, &left_ms), LL_OK);
}

/* A server of the test's own, the lock "user:1" held by a, and a second client. */
struct own_world {
    struct fixture_redis redis;
    struct ll_client *a, *b;
    struct ll_lock *la, *lb;
    redisContext *raw;
};

static void open_own(struct own_world *o)
{
    *o = (struct own_world){0};
    fixture_redis_start(&o->redis, NULL);
    o->raw = lock_raw_connection(o->redis.url);
    o->a = lock_client(o->redis.url, 0);
    o->b = lock_client(o->redis.url, 0);
    o->la = ll_new(o->a);
    o->lb = ll_new(o->b);
    lock_install_epoch(o->a, 1);
}

static void close_own(struct own_world *o)
{
    ll_free(o->la);
    ll_free(o->lb);
    ll_close(o->a);
    ll_close(o->b);
    redisFree(o->raw);
    fixture_redis_close(&o->redis);
}

/* kill -9, and the same again from what lies on the disk. */
static void crash(struct own_world *o)
{
    fixture_redis_kill(&o->redis);
    fixture_redis_start(&o->redis, NULL);
    redisFree(o->raw);
    o->raw = lock_raw_connection(o->redis.url);
}

static int own_integer(struct own_world *o, const char *command)
{
    struct lock_world w = {.raw = o->raw};

    return (int)lock_raw_integer(&w, command);
}

static void redis_restart_empty(void **state)
{
    struct own_world o;
    int64_t before;

    (void)state;
    open_own(&o);
    assert_int_equal(ll_try(o.la, "user:1", 60000), LL_OK);
    before = ll_token(o.la);
    crash(&o);
    assert_int_equal(own_integer(&o, "DBSIZE"), 0);
    assert_int_equal(ll_try(o.lb, "user:1", 60000), LL_E_EPOCH);
    lock_install_epoch(o.b, 2);
    assert_int_equal(ll_try(o.lb, "user:1", 60000), LL_OK);
    assert_true(ll_token(o.lb) > before);
    assert_true(ll_valid(o.la, 0)); /* it has not looked yet */
    assert_int_equal(ll_extend(o.la, 60000), LL_LOST);
    assert_false(ll_valid(o.la, 0));
    assert_int_equal(ll_release(o.la), LL_NOT_OWNER);
    assert_int_equal(ll_release(o.lb), LL_OK);
    close_own(&o);
}

/* The dump is twenty tenures old: the counter goes back, the tokens do not. */
static void redis_restart_old_snapshot(void **state)
{
    struct own_world o;
    int64_t before;

    (void)state;
    open_own(&o);
    assert_int_equal(ll_try(o.lb, "user:2", 60000), LL_OK);
    freeReplyObject(redisCommand(o.raw, "SAVE"));
    for (int i = 0; i < 20; i++) {
        assert_int_equal(ll_try(o.la, "user:1", 60000), LL_OK);
        before = ll_token(o.la);
        assert_int_equal(ll_release(o.la), LL_OK);
    }
    crash(&o);
    assert_int_equal(own_integer(&o, "HINCRBY lock:!fence n 0"), 1); /* it was 21 */
    assert_int_equal(ll_try(o.la, "user:1", 60000), LL_E_EPOCH);
    lock_install_epoch(o.a, 2);
    assert_int_equal(ll_try(o.la, "user:1", 60000), LL_OK);
    assert_true(ll_token(o.la) > before);
    ll_abandon(o.la);
    assert_int_equal(ll_try(o.la, "user:2", 60000), LL_BUSY); /* it came back too */
    close_own(&o);
}

/* ---- some of it ---- */

static void key_deleted_by_operator(void **state)
{
    struct lock_world *w = *state;
    int64_t left_ms;

    assert_int_equal(ll_try(w->la, "user:1", 60000), LL_OK);
    lock_raw_do(w, "DEL lock:user:1");
    assert_int_equal(ll_try(w->lb, "user:1", 60000), LL_OK);
    assert_true(ll_token(w->lb) > ll_token(w->la));
    assert_int_equal(ll_extend(w->la, 60000), LL_LOST);
    assert_false(ll_valid(w->la, 0));
    assert_int_equal(ll_release(w->la), LL_NOT_OWNER);
    assert_int_equal(ll_verify(w->lb, &left_ms), LL_OK);
}

static void eviction_policy_detected(void **state)
{
    static const char *const policies[] = {
        "allkeys-lru",  "allkeys-lfu",  "allkeys-random", "volatile-lru",
        "volatile-lfu", "volatile-ttl", "volatile-random"};
    struct lock_world *w = *state;

    for (size_t i = 0; i < sizeof policies / sizeof policies[0]; i++) {
        freeReplyObject(
            redisCommand(w->raw, "CONFIG SET maxmemory-policy %s", policies[i]));
        ll_disconnect(w->a);
        assert_int_equal(ll_connect(w->a), LL_E_EVICTING);
        assert_non_null(strstr(ll_error(w->a), policies[i]));
        assert_non_null(strstr(ll_error(w->a), "noeviction"));
        assert_int_equal(ll_try(w->la, "user:1", 5000), LL_E_EVICTING);
    }
    lock_raw_do(w, "CONFIG SET maxmemory-policy noeviction");
    assert_int_equal(ll_try(w->la, "user:1", 5000), LL_OK);
}

/* The policy was changed under our connection, and Redis threw everything away. */
static void eviction_policy_detected_too_late_asks_for_an_epoch(void **state)
{
    struct own_world o;

    (void)state;
    open_own(&o);
    assert_int_equal(ll_try(o.la, "user:1", 60000), LL_OK);
    freeReplyObject(redisCommand(o.raw, "CONFIG SET maxmemory-policy allkeys-random"));
    freeReplyObject(redisCommand(o.raw, "CONFIG SET maxmemory 1"));
    freeReplyObject(redisCommand(o.raw, "SET other 1"));
    freeReplyObject(redisCommand(o.raw, "CONFIG SET maxmemory 0"));
    assert_int_equal(own_integer(&o, "EXISTS lock:user:1 lock:!fence"), 0);
    assert_int_equal(ll_try(o.la, "user:2", 60000), LL_E_INVAL); /* still held */
    assert_int_equal(ll_release(o.la), LL_GONE);
    assert_int_equal(ll_try(o.la, "user:2", 60000), LL_E_EVICTING); /* looked again */
    freeReplyObject(redisCommand(o.raw, "CONFIG SET maxmemory-policy noeviction"));
    assert_int_equal(ll_try(o.la, "user:2", 60000), LL_E_EPOCH);
    close_own(&o);
}

/* ---- the holder ---- */

/* A process that holds "user:1" and renews it. */
static pid_t start_holder(uint32_t lease_ms)
{
    struct ll_renew_options o = {.size = sizeof o};
    struct ll_renewer *r;
    struct ll_client *c;
    struct ll_lock *l;
    pid_t pid = fork();

    if (pid != 0)
        return pid;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    c = lock_client(lock_server.url, 0);
    l = ll_new(c);
    if (ll_try(l, "user:1", lease_ms) != LL_OK || ll_renewer_open(&r, c, &o) != LL_OK ||
        ll_renew(r, l, 0, 60000) != LL_OK)
        _exit(1);
    for (;;)
        (void)pause();
}

static void crash_releases_by_ttl(void **state)
{
    enum { LEASE_MS = 500 };

    struct lock_world *w = *state;
    int64_t killed_ms, held_ms = 0, asked_ms;
    pid_t pid = start_holder(LEASE_MS);

    fixture_pause_ms(3 * LEASE_MS);
    assert_int_equal(ll_try(w->la, "user:1", 5000), LL_BUSY); /* it is renewed */
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(fixture_reap(pid, 5), 128 + SIGKILL);
    killed_ms = ll_now_ms();
    do { /* held at least until it was asked */
        asked_ms = ll_now_ms();
        held_ms = lock_raw_integer(w, "EXISTS lock:user:1") == 1 ? asked_ms : held_ms;
        fixture_pause_ms(2);
    } while (held_ms == asked_ms);
    assert_in_range(held_ms - killed_ms, LEASE_MS / 4, LEASE_MS + 100);
    assert_int_equal(ll_try(w->la, "user:1", 5000), LL_OK);
    assert_int_equal(ll_token(w->la), (INT64_C(1) << 40) + 2); /* of two tenures */
}

/* Eight processes wait for the dead one's key: each has it once, one after the other.
 */
static void crash_releases_by_ttl_to_one_waiter_at_a_time(void **state)
{
    const struct ll_key key = {"user:1", 6};
    struct lock_world *w = *state;
    pid_t holder = start_holder(500), pids[8];

    fixture_pause_ms(200);
    assert_int_equal(lock_raw_integer(w, "EXISTS lock:user:1"), 1);
    for (int i = 0; i < 8; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            struct ll_client *c = lock_client(lock_server.url, 0);
            struct ll_lock *l = ll_new(c);

            _exit(ll_acquire_wait(l, &key, 1, LL_ALL, 5000, 20000) == LL_OK &&
                          ll_release(l) == LL_OK
                      ? 0
                      : 1);
        }
    }
    fixture_pause_ms(200);
    assert_int_equal(kill(holder, SIGKILL), 0);
    assert_int_equal(fixture_reap(holder, 5), 128 + SIGKILL);
    for (int i = 0; i < 8; i++)
        assert_int_equal(fixture_reap(pids[i], 30), 0);
    assert_int_equal(lock_raw_integer(w, "HINCRBY lock:!fence n 0"), 9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOCK_TEST(flushall_while_held),
        LOCK_TEST(key_deleted_by_operator),
        LOCK_TEST(eviction_policy_detected),
        LOCK_TEST(crash_releases_by_ttl),
        LOCK_TEST(crash_releases_by_ttl_to_one_waiter_at_a_time),
        cmocka_unit_test(redis_restart_empty),
        cmocka_unit_test(redis_restart_old_snapshot),
        cmocka_unit_test(eviction_policy_detected_too_late_asks_for_an_epoch),
    };

    fixture_need_servers();
    return cmocka_run_group_tests(tests, lock_start_server, lock_stop_server);
}
