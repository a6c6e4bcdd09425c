/* A lock key without a time to live: no pool leaves one, nothing ends it. It is told of
 * once, never broken, and `run --once` does not wait for it for ever. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "tests/lib/pool_world.h"

static const struct pool_work work = {.users = 20, .periods = 2};
static struct fixture f;
static struct fixture_child pool;

static int open_world(void **state)
{
    (void)state;
    fixture_open_migrated(&f);
    pool_work_put(&f, &work);
    fixture_become(&f, "ledgerlock_worker");
    fixture_env("LEDGERLOCK_LOCKS_LEASE_MS", "1000");
    return 0;
}

static int close_world(void **state)
{
    (void)state;
    if (pool.pid > 0) {
        (void)kill(pool.pid, SIGKILL);
        (void)waitpid(pool.pid, NULL, 0);
    }
    memset(&pool, 0, sizeof pool);
    fixture_close(&f);
    return 0;
}

/* Sends "VERB <prefix>KEY REST". */
static void redis(const char *verb, const char *key, const char *rest, char reply[64])
{
    char command[256];

    (void)snprintf(command, sizeof command, "%s %s%s %s", verb, f.prefix, key, rest);
    pool_redis(f.redis_url, reply, 64, command);
}

static void assert_still_there(const char *key)
{
    char reply[64];

    redis("PTTL", key, "", reply);
    assert_string_equal(reply, "-1");
    redis("DEL", key, "", reply);
}

static void once_ends_with_work_left_and_names_the_key(void **state)
{
    static struct fixture_output o;
    char reply[64];

    (void)state;
    redis("SET", "user:3", "leftover", reply);
    fixture_spawn(&f, &pool, "run", "--once", "-w", "4", "--now", pool_work_now(&work),
                  NULL);
    if (fixture_wait(&pool, 20, &o) != 7)
        fail_msg("exit %d: %s", o.code, o.err);
    pool.pid = 0;
    fixture_assert_contains(o.err, "event=lock.endless");
    fixture_assert_contains(o.err, "key=user:3 ");
    fixture_assert_contains(o.err, "\"ledgerlock locks release user:3\"");
    assert_null(strstr(strstr(o.err, "event=lock.endless") + 1, "event=lock.endless"));
    fixture_assert_contains(o.err, "event=pool.work_left");
    assert_int_equal(pool_work_done(&f), pool_work_all(&work) - 2);
    assert_still_there("user:3");
}

static void once_after_the_named_command_ends_with_all_done(void **state)
{
    static struct fixture_output o;
    char reply[64];

    (void)state;
    redis("HSET", "user:3", "a list", reply); /* whatever type it has */
    assert_int_equal(fixture_run(&f, &o, "run", "--once", "-w", "2", "--now",
                                 pool_work_now(&work), NULL),
                     7);
    assert_int_equal(fixture_run(&f, &o, "locks", "release", "user:3", "--yes", NULL),
                     0);
    assert_int_equal(
        fixture_run(&f, &o, "run", "--once", "--now", pool_work_now(&work), NULL), 0);
    pool_work_assert_exact(&f, &work);
}

/* Twice as long as the patience for an endless one. */
static void once_waits_for_a_key_that_will_end(void **state)
{
    static struct fixture_output o;
    int64_t since_ms = pool_now_ms();
    char reply[64];

    (void)state;
    redis("SET", "user:3", "other PX 6000", reply);
    if (fixture_run(&f, &o, "run", "--once", "--now", pool_work_now(&work), NULL) != 0)
        fail_msg("exit %d: %s", o.code, o.err);
    assert_true(pool_now_ms() - since_ms >= 5000);
    assert_null(strstr(o.err, "lock.endless"));
    pool_work_assert_exact(&f, &work);
}

/* A pool that is to run on says it once, however long, and works the row when the key
 * is gone. */
static void pool_says_it_once_and_works_on_when_it_is_gone(void **state)
{
    char reply[64];

    (void)state;
    redis("SET", "user:3", "leftover", reply);
    fixture_spawn(&f, &pool, "run", "-w", "4", "--now", pool_work_now(&work), NULL);
    pool_work_wait(&f, pool_work_all(&work) - 2, 10);
    fixture_pause_ms(4500);
    assert_int_equal(pool_log_count(&pool, "event=lock.endless"), 1);
    assert_still_there("user:3");
    pool_work_wait(&f, pool_work_all(&work), 10);
    (void)kill(pool.pid, SIGTERM);
    pool_assert_ends(&pool, 0, 10);
    pool.pid = 0;
}

#define ENDLESS(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ENDLESS(once_ends_with_work_left_and_names_the_key),
        ENDLESS(once_after_the_named_command_ends_with_all_done),
        ENDLESS(once_waits_for_a_key_that_will_end),
        ENDLESS(pool_says_it_once_and_works_on_when_it_is_gone),
    };

    fixture_need_servers();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
