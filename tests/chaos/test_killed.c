/* A worker is killed: idle, inside its transaction, after its COMMIT was sent, before
 * it gives its locks back. Another does what is left, and nothing is done twice. */
#include "lua_gen.h"
#include "tests/lib/fault.h"
#include "tests/lib/lock_world.h"

/* A Bind message of the statement: its name behind an empty portal name. */
static const char apply[] = "\0billing_apply_charges";

/* Kills the pool's worker of billing, its first, which its supervisor sees; returns
 * when another is there. */
static void kill_the_worker(void)
{
    pid_t before[POOL_CHILDREN], after[POOL_CHILDREN];
    size_t n;

    n = pool_children(world.pool.pid, before);
    assert_in_range(n, 1, 2);
    assert_true(fault_kill(before[0], SIGKILL));
    pool_log_wait(&world.pool, " signal=9 restart_in_ms=");
    pool_wait_children(world.pool.pid, n);
    assert_int_equal(pool_children(world.pool.pid, after), n);
    for (size_t i = 0; i < n; i++)
        assert_int_not_equal(before[0], after[i]);
}

/* So long that only the successor of a dead worker can have freed its keys in time. */
WORLD(.any = true,
      .points = true,
      .checker = true,
      .redis = true,
      .proxies = true,
      .lease_ms = 90000,
      .poll_ms = 50,
      .batch = 5,
      .load = &fault_small);

/* The clients begin when it is replaced. */
/* Guarantee: A worker that is killed with nothing to do is replaced, and new work is
 * done. */
CASE(idle_worker_killed_is_replaced)
{
    fault_as_shipped();
    world.has_no_clients = true;
    fault_start("1");
    while (load_left(&world.f) > 0)
        fixture_pause_ms(20);
    FIXTURE_AWAIT(pool_lock_keys(&world.f) == 0, "a key stays"); /* it is idle */
    kill_the_worker();
    fault_recovers();
    fault_end();
}

/* Guarantee: A worker killed inside its transaction leaves nothing behind; its rows
 * are worked once by another. */
CASE(killed_in_transaction_is_rolled_back_and_redone)
{
    proxy_swallow_at(&world.to_postgres, apply, sizeof apply);
    fault_start_one();
    assert_true(proxy_wait(&world.to_postgres, PROXY_SWALLOWED, 1, 60));
    assert_true(fault_ask("SELECT count(*) FROM pg_stat_activity WHERE datname ="
                          " current_database() AND state = 'idle in transaction'") > 0);
    assert_true(pool_lock_keys(&world.f) > 0);
    kill_the_worker();
    proxy_cut_all(&world.to_postgres); /* what it had sent is lost with it */
    assert_int_equal(pool_work_done(&world.f), 0);
    proxy_swallow(&world.to_postgres, false); /* from here on its successor works */
    fault_recovers();
    fault_end();
}

/* Guarantee: A worker killed after its COMMIT was sent has its rows done once. */
CASE(killed_after_commit_was_sent_is_done_once)
{
    int64_t done;

    fault_as_shipped();
    proxy_swallow_after(&world.to_postgres, PROXY_COMMIT, PROXY_COMMIT_SIZE);
    fault_start_one();
    assert_true(proxy_wait(&world.to_postgres, PROXY_SWALLOWED, 1, 60));
    done = pool_work_done(&world.f);
    assert_true(done > 0); /* committed, and the worker was not told */
    kill_the_worker();
    assert_int_equal(pool_work_done(&world.f), done);
    proxy_cut_all(&world.to_postgres);
    proxy_swallow(&world.to_postgres, false);
    fault_recovers();
    fault_end();
    assert_int_equal(pool_incidents(&world.f, "commit_unknown", ""), 0);
}

/* The library's command to release begins with this. */
static void release_command(char *bytes, size_t size)
{
    redisContext *raw = lock_raw_connection(world.redis.url);
    const struct lua_text *text = &lua_texts[LUA_RELEASE];
    redisReply *sha;

    freeReplyObject(redisCommand(raw, "AUTH %s", pool_redis_secret()));
    sha = redisCommand(raw, "SCRIPT LOAD %b", text->text, text->len);
    assert_int_equal(sha->type, REDIS_REPLY_STRING);
    (void)snprintf(bytes, size, "EVALSHA\r\n$40\r\n%s", sha->str);
    freeReplyObject(sha);
    redisFree(raw);
}

/* Guarantee: A worker killed before it gives its locks back has its rows done once,
 * and its keys end with their lease. */
CASE(killed_before_release_is_done_once_and_its_keys_end)
{
    char release[64];
    int64_t done;

    release_command(release, sizeof release);
    proxy_swallow_at(&world.to_redis, release, strlen(release));
    fault_start_one();
    assert_true(proxy_wait(&world.to_redis, PROXY_SWALLOWED, 1, 60));
    done = pool_work_done(&world.f);
    assert_true(done > 0);
    assert_true(pool_lock_keys(&world.f) > 0);
    kill_the_worker();
    proxy_cut_all(&world.to_redis);
    proxy_swallow(&world.to_redis, false);
    fault_recovers();
    fault_end();
}
