/* Redis is killed with -9 and comes back: with an append-only file the locks are there
 * again; from an older snapshot the tokens have gone back, and the rows notice. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/chaos_world.h"

static const char begin[] = "BEGIN ISOLATION";

#define EPOCH "SELECT epoch FROM ledgerlock.lock_epoch"

static void use_append_only_file(const char *fsync)
{
    char command[64];

    fixture_redis_kill(&chaos.redis);
    chaos_redis_start("--appendonly", "yes");
    (void)snprintf(command, sizeof command, "CONFIG SET appendfsync %s", fsync);
    chaos_redis_ok(command);
}

/* The locks of the worker that stands still are there again, with an end. */
static void assert_locks_are_back(int64_t before)
{
    char command[160], name[64], reply[32];

    assert_int_equal(pool_lock_keys(&chaos.f), before);
    assert_true(pool_lock_name(&chaos.f, name, sizeof name));
    (void)snprintf(command, sizeof command, "PTTL %s%s", chaos.f.prefix, name);
    chaos_redis(reply, sizeof reply, command);
    assert_in_range(strtoll(reply, NULL, 10), 1, 8000);
}

/* With everysec a write may wait up to two seconds for a slow disk. */
static void wait_until_written(void)
{
    static char info[1 << 12];

    for (int i = 0; i < 150; i++) {
        chaos_redis(info, sizeof info, "INFO persistence");
        if (strstr(info, "aof_buffer_length:0\r") != NULL)
            return;
        fixture_pause_ms(20);
    }
    fail_msg("the append-only file is never written");
}

static void kill_while_locks_are_held(void)
{
    int64_t held, epoch;

    proxy_swallow_at(&chaos.to_postgres, begin, strlen(begin));
    chaos_start("1");
    assert_true(proxy_wait(&chaos.to_postgres, PROXY_SWALLOWED, 1, 10));
    epoch = chaos_ask(EPOCH);
    held = pool_lock_keys(&chaos.f);
    assert_true(held > 0);
    wait_until_written();
    fixture_redis_kill(&chaos.redis);
    chaos_redis_start("--appendonly", "yes");
    assert_locks_are_back(held);
    proxy_swallow(&chaos.to_postgres, false);
    chaos_assert_midway();
    chaos_recovers(40);
    chaos_end();
    assert_true(chaos_ask(EPOCH) > epoch); /* another process: trusted no further */
}

static void redis_killed_with_aof_everysec_locks_are_back(void **state)
{
    (void)state;
    use_append_only_file("everysec");
    kill_while_locks_are_held();
}

static void redis_killed_with_aof_always_locks_are_back(void **state)
{
    (void)state;
    use_append_only_file("always");
    kill_while_locks_are_held();
}

static void tokens_gone_back_to_a_snapshot_are_raised_above_the_fences(void **state)
{
    int64_t epoch, fence, done;
    char sql[128];

    (void)state;
    chaos_start_midway();
    chaos_redis_ok("SAVE");
    done = pool_work_done(&chaos.f);
    pool_work_wait(&chaos.f, done + 300, 10);
    epoch = chaos_ask(EPOCH);
    fixture_redis_kill(&chaos.redis);
    fence = chaos_ask("SELECT max(fence) FROM ledgerlock.users");
    chaos_redis_start("--appendonly", "no");
    chaos_assert_midway();
    chaos_recovers(40);
    chaos_end();
    assert_true(chaos_ask(EPOCH) > epoch);
    assert_true(pool_incidents(&chaos.f, "epoch_bump", "") > 0);
    (void)snprintf(sql, sizeof sql,
                   "SELECT count(*) FROM ledgerlock.users WHERE fence > %" PRId64,
                   fence);
    assert_true(chaos_ask(sql) > 0);
}

static int open_small(void **state)
{
    (void)chaos_open_empty(state);
    fixture_env("LEDGERLOCK_LOCKS_LEASE_MS", "8000"); /* it outlasts a slow restart */
    chaos.work =
        (struct pool_work){.users = 60, .periods = 9, .orders = 60, .units = 40};
    chaos_fill();
    return 0;
}

#define KILLED_TEST(name, open) cmocka_unit_test_setup_teardown(name, open, chaos_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        KILLED_TEST(redis_killed_with_aof_everysec_locks_are_back, open_small),
        KILLED_TEST(tokens_gone_back_to_a_snapshot_are_raised_above_the_fences,
                    chaos_open),
    };
    const struct CMUnitTest more[] = {
        KILLED_TEST(redis_killed_with_aof_always_locks_are_back, open_small),
    };

    fixture_need_servers();
    if (chaos_is_full() && cmocka_run_group_tests(more, NULL, NULL) != 0)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
