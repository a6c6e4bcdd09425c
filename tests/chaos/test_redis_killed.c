/* Redis is killed with -9 and comes back: with an append-only file the locks are there
 * again; from an older snapshot the last token is too old, and tokens rise by the
 * clock. */
#include "tests/lib/fault.h"
#include "tests/lib/steps.h"

static const char begin[] = "BEGIN ISOLATION LEVEL READ COMMITTED";

/* The lease of the kept locks outlasts a slow restart. */
const struct world_plan world_plan = {.any = true,
                                      .points = true,
                                      .checker = true,
                                      .redis = true,
                                      .proxies = true,
                                      .lease_ms = 60000,
                                      .poll_ms = 50,
                                      .batch = 5,
                                      .load = &fault_small};
GROUP(.open = world_open, .close = world_close);

WORLD_OPEN(open_usual, FAULT_PLAN, .load = &fault_usual)

static void use_append_only_file(const char *fsync)
{
    fixture_redis_kill(&world.redis);
    fault_redis_start("--appendonly", "yes");
    assert_string_equal(redis_do("CONFIG SET appendfsync %s", fsync), "OK");
}

/* The locks of the workers that stand still are there again, with an end; another may
 * have got more meanwhile. */
static void assert_locks_are_back(int64_t before)
{
    char name[64];

    assert_true(pool_lock_keys(&world.f) >= before);
    assert_true(pool_lock_name(&world.f, name, sizeof name));
    assert_in_range(strtoll(redis_do("PTTL %s%s", world.f.prefix, name), NULL, 10), 1,
                    60000);
}

/* With everysec a write may wait up to two seconds for a slow disk. */
static void wait_until_written(void)
{
    static char info[1 << 12];

    for (int i = 0; i < 3000; i++) {
        fault_redis(info, sizeof info, "INFO persistence");
        if (strstr(info, "aof_buffer_length:0\r") != NULL)
            return;
        fixture_pause_ms(20);
    }
    fail_msg("the append-only file is never written");
}

static void assert_orders_are_left(void)
{
    assert_true(world_ask("SELECT count(*) FROM orders WHERE state = 'pending'") > 0);
}

/* The pool says an outage once, and once that it is over. */
static void end_after_outages(unsigned least)
{
    unsigned n;

    fault_recovers();
    FIXTURE_AWAIT(pool_log_count(&world.pool, "event=pool.redis_up") >= least &&
                      pool_log_count(&world.pool, "event=pool.redis_up") ==
                          pool_log_count(&world.pool, "event=pool.redis_down"),
                  "an outage does not end");
    n = pool_log_count(&world.pool, "event=pool.redis_down");
    assert_in_range(n, least, 1);
    fault_end();
    promise_int_equal(world_parked(), 0);
}

/* Nobody may have asked for a lock while Redis was away. */
static void kill_while_locks_are_held(void)
{
    int64_t held;

    proxy_swallow_at(&world.to_postgres, begin, strlen(begin));
    fault_start("4");
    assert_true(proxy_wait(&world.to_postgres, PROXY_SWALLOWED, 1, 60));
    held = pool_lock_keys(&world.f);
    assert_true(held > 0);
    wait_until_written();
    fixture_redis_kill(&world.redis);
    fault_redis_start("--appendonly", "yes");
    assert_locks_are_back(held);
    assert_orders_are_left();
    proxy_swallow(&world.to_postgres, false);
    end_after_outages(0);
}

/* Guarantee: A Redis that comes back from its append-only file (everysec) has its
 * locks, each with an end. */
CASE(redis_killed_with_aof_everysec_locks_are_back)
{
    use_append_only_file("everysec");
    kill_while_locks_are_held();
}

/* Guarantee: A Redis that comes back from its append-only file (always) has its
 * locks, each with an end. */
CASE(redis_killed_with_aof_always_locks_are_back, .when = fault_is_full)
{
    use_append_only_file("always");
    kill_while_locks_are_held();
}

/* Guarantee: A Redis that comes back from an older file in the middle of the work
 * gives tokens above every fence. */
CASE(tokens_rise_above_the_fences_after_an_older_snapshot, .open = open_usual)
{
    int64_t fence;

    fault_as_shipped();
    fault_start_midway();
    fault_redis_ok("SAVE");
    fault_work_wait(300);
    fixture_redis_kill(&world.redis);
    fence = super_ask("SELECT max(fence) FROM ledgerlock.users");
    pool_log_wait(&world.pool, "event=pool.redis_down");
    assert_orders_are_left();
    fault_redis_start("--appendonly", "no");
    end_after_outages(1);
    assert_true(world_ask("SELECT count(*) FROM users WHERE fence > %" PRId64, fence) >
                0);
}
