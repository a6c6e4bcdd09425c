/* A worker is killed: idle, inside its transaction, after its COMMIT was sent, before
 * it gives its locks back. Another does what is left, and nothing is done twice. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "lua_gen.h"
#include "tests/lib/chaos_world.h"
#include "tests/lib/lock_world.h"

/* A Bind message of the statement: its name behind an empty portal name. */
static const char apply[] = "\0billing_apply_charges";

static int open_small(void **state)
{
    (void)chaos_open_empty(state);
    chaos.work =
        (struct pool_work){.users = 60, .periods = 9, .orders = 60, .units = 40};
    chaos_fill();
    return 0;
}

/* Kills the pool's only worker, which its supervisor sees; returns when another is
 * there. */
static void kill_the_worker(void)
{
    pid_t before[POOL_CHILDREN], after[POOL_CHILDREN];

    chaos.bound_ms = CHAOS_SEEN_MS;
    assert_int_equal(pool_children(chaos.pool.pid, before), 1);
    assert_true(chaos_kill(before[0], SIGKILL));
    pool_log_wait(&chaos.pool, " signal=9 restart_in_ms=", 5);
    pool_wait_children(chaos.pool.pid, 1, 5);
    assert_int_equal(pool_children(chaos.pool.pid, after), 1);
    assert_int_not_equal(before[0], after[0]);
}

static void idle_worker_killed_is_replaced(void **state)
{
    char url[FIXTURE_URL];

    (void)state;
    chaos.work = (struct pool_work){.users = 20, .periods = 1, .units = 9};
    chaos_fill();
    chaos_start("1");
    pool_work_wait(&chaos.f, pool_work_all(&chaos.work), 10);
    fixture_pause_ms(300);
    assert_int_equal(pool_lock_keys(&chaos.f), 0); /* it is idle */
    kill_the_worker();
    fixture_url_as(&chaos.f, "ledgerlock_owner", url, sizeof url);
    fixture_exec(url, "SELECT ledgerlock.place_order(7, 'late', '[{\"sku\": \"hot\","
                      " \"qty\": 1}]', '2024-01-01Z')");
    chaos.work.orders = 1;
    chaos_recovers(2);
    chaos_end();
}

static void killed_in_transaction_is_rolled_back_and_redone(void **state)
{
    (void)state;
    proxy_swallow_at(&chaos.to_postgres, apply, sizeof apply);
    chaos_start("1");
    assert_true(proxy_wait(&chaos.to_postgres, PROXY_SWALLOWED, 1, 10));
    assert_true(chaos_ask("SELECT count(*) FROM pg_stat_activity WHERE datname ="
                          " current_database() AND state = 'idle in transaction'") > 0);
    assert_true(pool_lock_keys(&chaos.f) > 0);
    kill_the_worker();
    proxy_cut_all(&chaos.to_postgres); /* what it had sent is lost with it */
    proxy_swallow(&chaos.to_postgres, false);
    assert_int_equal(pool_work_done(&chaos.f), 0);
    chaos_recovers(30);
    chaos_end();
}

static void killed_after_commit_was_sent_is_done_once(void **state)
{
    int64_t done;

    (void)state;
    proxy_swallow_after(&chaos.to_postgres, PROXY_COMMIT, PROXY_COMMIT_SIZE);
    chaos_start("1");
    assert_true(proxy_wait(&chaos.to_postgres, PROXY_SWALLOWED, 1, 10));
    done = pool_work_done(&chaos.f);
    assert_true(done > 0); /* committed, and the worker was not told */
    kill_the_worker();
    assert_int_equal(pool_work_done(&chaos.f), done);
    proxy_cut_all(&chaos.to_postgres);
    proxy_swallow(&chaos.to_postgres, false);
    chaos_recovers(30);
    chaos_end();
    assert_int_equal(pool_incidents(&chaos.f, "commit_unknown", ""), 0);
}

/* What the library sends to release begins with this. */
static void release_command(char *bytes, size_t size)
{
    redisContext *raw = lock_raw_connection(chaos.redis.url);
    const struct lua_text *text = &lua_texts[LUA_RELEASE];
    redisReply *sha;

    freeReplyObject(redisCommand(raw, "AUTH %s", pool_redis_secret()));
    sha = redisCommand(raw, "SCRIPT LOAD %b", text->text, text->len);
    assert_int_equal(sha->type, REDIS_REPLY_STRING);
    (void)snprintf(bytes, size, "EVALSHA\r\n$40\r\n%s", sha->str);
    freeReplyObject(sha);
    redisFree(raw);
}

static void killed_before_release_is_done_once_and_its_keys_end(void **state)
{
    char release[64];
    int64_t done;

    (void)state;
    release_command(release, sizeof release);
    proxy_swallow_at(&chaos.to_redis, release, strlen(release));
    chaos_start("1");
    assert_true(proxy_wait(&chaos.to_redis, PROXY_SWALLOWED, 1, 10));
    done = pool_work_done(&chaos.f);
    assert_true(done > 0);
    assert_true(pool_lock_keys(&chaos.f) > 0);
    kill_the_worker();
    proxy_cut_all(&chaos.to_redis);
    proxy_swallow(&chaos.to_redis, false);
    chaos_recovers(30);
    chaos_end();
}

#define KILLED_TEST(name, open) cmocka_unit_test_setup_teardown(name, open, chaos_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        KILLED_TEST(idle_worker_killed_is_replaced, chaos_open_empty),
        KILLED_TEST(killed_in_transaction_is_rolled_back_and_redone, open_small),
        KILLED_TEST(killed_after_commit_was_sent_is_done_once, open_small),
        KILLED_TEST(killed_before_release_is_done_once_and_its_keys_end, open_small),
    };

    fixture_need_servers();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
