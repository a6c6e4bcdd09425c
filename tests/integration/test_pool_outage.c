/* pool: its servers go away in the middle of the work: it stays up, says so once,
 * charges nothing meanwhile, resumes by itself, and the totals are exact. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/checker.h"
#include "tests/lib/points.h"
#include "tests/lib/pool_world.h"
#include "tests/lib/private_pg.h"
#include "tests/lib/proxy.h"

static struct private_pg postgres;
static struct fixture f;
static struct fixture_redis redis;
static struct proxy proxy;
static struct fixture_child pool;
static struct checker checker;

enum { FLUSHES = 8 };

static const struct pool_work work = {
    .users = 200, .periods = 14, .orders = 200, .units = 120};

static int open_world(void **state)
{
    (void)state;
    fixture_open_migrated(&f);
    checker_open(&checker);
    fixture_become(&f, "ledgerlock_worker");
    fixture_env("LEDGERLOCK_LOCKS_LEASE_MS", "2000");
    fixture_env("LEDGERLOCK_POOL_POLL_MS", "100");
    fixture_env("LEDGERLOCK_POOL_BATCH", "5");
    pool_work_put(&f, &work);
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
    proxy_close(&proxy);
    fixture_redis_close(&redis);
    pool_redis_password(NULL);
    if (postgres.pid == 0)
        private_pg_start(&postgres);
    fixture_close(&f);
    checker_close(&checker);
    return 0;
}

static void start_midway(void)
{
    fixture_spawn(&f, &pool, "run", "-w", "4", "--now", pool_work_now(&work), NULL);
    pool_work_wait(&f, 100, 10);
}

/* The rest of the work is done by the same four processes, and all of it is right. */
static void finish_exactly(void)
{
    pool_work_wait(&f, pool_work_all(&work), 40);
    (void)kill(pool.pid, SIGTERM);
    pool_assert_ends(&pool, 0, 10);
    assert_int_equal(pool_log_count(&pool, "event=pool.worker_died"), 0);
    pool_work_assert_exact(&f, &work);
    checker_assert_holds(&checker, &f, pool_work_now(&work), "--bound-ms 6000");
}

static void assert_said_once(const char *down, const char *up)
{
    assert_int_equal(pool_log_count(&pool, down), 1);
    assert_int_equal(pool_log_count(&pool, up), 1);
}

/* ---- PostgreSQL ---- */

static void postgres_killed_and_started_again_pool_resumes(void **state)
{
    pid_t before[POOL_CHILDREN], after[POOL_CHILDREN];

    (void)state;
    start_midway();
    assert_int_equal(pool_children(pool.pid, before), 4);
    private_pg_kill(&postgres);
    pool_log_wait(&pool, "event=pool.postgres_down", 5);
    fixture_pause_ms(1000);
    assert_int_equal(pool_log_count(&pool, "event=pool.postgres_up"), 0);
    private_pg_start(&postgres);
    checker_healed(&checker);
    assert_true(pool_work_done(&f) < pool_work_all(&work)); /* it was midway */
    pool_log_wait(&pool, "event=pool.postgres_up", 10);
    assert_int_equal(pool_children(pool.pid, after), 4);
    assert_memory_equal(before, after, 4 * sizeof before[0]);
    finish_exactly();
    assert_said_once("event=pool.postgres_down", "event=pool.postgres_up");
}

static void postgres_sessions_terminated_pool_goes_on(void **state)
{
    int64_t ended = 0;

    (void)state;
    start_midway();
    for (int i = 0; i < 5; i++) {
        ended += fixture_query_int8(
            postgres.url, "SELECT count(*) FROM (SELECT pg_terminate_backend(pid) FROM"
                          " pg_stat_activity WHERE application_name LIKE"
                          " 'ledgerlock worker%') AS t");
        fixture_pause_ms(100);
    }
    checker_healed(&checker);
    assert_true(ended >= 8);
    assert_true(pool_work_done(&f) < pool_work_all(&work));
    finish_exactly();
    assert_int_equal(pool_log_count(&pool, "event=commit.unsettled"), 0);
    assert_int_equal(pool_incidents(&f, "commit_unknown", ""),
                     pool_incidents(&f, "commit_unknown", "settled: "));
}

static void postgres_in_a_black_hole_pool_waits_and_resumes(void **state)
{
    int64_t done;

    (void)state;
    proxy_open_postgres(&proxy, &f);
    start_midway();
    proxy_swallow(&proxy, true);
    pool_log_wait(&pool, "event=pool.postgres_down", 10);
    assert_true(proxy_wait(&proxy, PROXY_SWALLOWED, 4, 5));
    done = pool_work_done(&f);
    fixture_pause_ms(500);
    assert_int_equal(pool_work_done(&f), done);
    assert_true(done < pool_work_all(&work));
    proxy_swallow(&proxy, false);
    checker_healed(&checker);
    pool_log_wait(&pool, "event=pool.postgres_up", 15);
    finish_exactly();
    assert_said_once("event=pool.postgres_down", "event=pool.postgres_up");
}

/* ---- Redis ---- */

static void use_own_redis(void)
{
    memset(&redis, 0, sizeof redis);
    pool_redis_start(&redis);
    (void)snprintf(f.redis_url, sizeof f.redis_url, "%s", redis.url);
}

static int64_t ask(const char *sql)
{
    return fixture_query_int8(f.url, sql);
}

#define MAX_FENCE                                                                      \
    "SELECT greatest((SELECT max(fence) FROM ledgerlock.charges),"                     \
    " (SELECT max(fence) FROM ledgerlock.orders))"

static void redis_restart_empty_pool_raises_the_epoch_and_resumes(void **state)
{
    int64_t epoch, done, fence, newer;
    char sql[256];

    (void)state;
    use_own_redis();
    start_midway();
    epoch = ask("SELECT epoch FROM ledgerlock.lock_epoch");
    fixture_redis_kill(&redis);
    pool_log_wait(&pool, "event=pool.redis_down", 5);
    fixture_pause_ms(300); /* batches that were in flight */
    done = pool_work_done(&f);
    fence = ask(MAX_FENCE);
    fixture_pause_ms(700);
    assert_int_equal(pool_work_done(&f), done); /* nothing is charged without locks */
    assert_true(done < pool_work_all(&work));
    pool_redis_start(&redis);
    checker_healed(&checker);
    pool_log_wait(&pool, "event=pool.redis_up", 10);
    finish_exactly();
    assert_said_once("event=pool.redis_down", "event=pool.redis_up");
    assert_true(ask("SELECT epoch FROM ledgerlock.lock_epoch") > epoch);
    (void)snprintf(
        sql, sizeof sql,
        "SELECT (SELECT count(*) FROM ledgerlock.charges WHERE fence > %" PRId64
        ") + (SELECT count(*) FROM ledgerlock.orders WHERE fence > %" PRId64 ")",
        fence, fence);
    newer = ask(sql);
    assert_int_equal(newer, pool_work_all(&work) - done);
    assert_true(pool_incidents(&f, "epoch_bump", "") > 0);
}

/* Idle workers ask for no lock, so they must look by themselves. */
static void redis_back_while_nothing_is_due_is_said(void **state)
{
    static struct fixture_output o;

    (void)state;
    use_own_redis();
    start_midway();
    fixture_redis_kill(&redis);
    pool_log_wait(&pool, "event=pool.redis_down", 5);
    assert_int_equal(fixture_run(&f, &o, "run", "--once", "--lock-mode",
                                 "database-only", "--batch", "500", "--now",
                                 pool_work_now(&work), NULL),
                     0);
    assert_int_equal(pool_work_done(&f), pool_work_all(&work));
    pool_redis_start(&redis);
    checker_healed(&checker);
    pool_log_wait(&pool, "event=pool.redis_up", 10);
    finish_exactly();
    assert_said_once("event=pool.redis_down", "event=pool.redis_up");
}

static void flushall_while_held_ten_times_a_second_totals_are_exact(void **state)
{
    int64_t done;
    char reply[32];

    (void)state;
    use_own_redis();
    fixture_env("LEDGERLOCK_POOL_BATCH", "1"); /* the last flush finds work, too */
    start_midway();
    done = pool_work_done(&f);
    for (int i = 0; i < FLUSHES; i++) {
        pool_redis(redis.url, reply, sizeof reply, "FLUSHALL");
        assert_string_equal(reply, "OK");
        fixture_pause_ms(90);
    }
    checker_healed(&checker);
    assert_true(pool_work_done(&f) > done); /* it goes on meanwhile */
    assert_true(pool_work_done(&f) < pool_work_all(&work));
    assert_true(pool_incidents(&f, "epoch_bump", "lost or changed") >= 3);
    finish_exactly();
}

static void fail_closed_redis_down_at_start_says_so_and_exits_5(void **state)
{
    static struct fixture_output o;

    (void)state;
    use_own_redis();
    fixture_redis_kill(&redis);
    assert_int_equal(fixture_run(&f, &o, "run", "--once", NULL), 5);
    fixture_assert_contains(o.err, redis.dir);
    assert_int_equal(pool_work_done(&f), 0);
}

static void set_password(const char *password)
{
    char command[64], reply[32];

    (void)snprintf(command, sizeof command, "CONFIG SET requirepass %s", password);
    pool_redis(redis.url, reply, sizeof reply, command);
    assert_string_equal(reply, "OK");
}

static void
fail_closed_wrong_password_at_start_says_so_and_charges_nothing(void **state)
{
    static struct fixture_output o;
    char path[128];

    (void)state;
    use_own_redis();
    set_password("right"); /* and no longer ours */
    fixture_env("LEDGERLOCK_REDIS_PASSWORD_FILE", NULL);
    assert_int_equal(fixture_run(&f, &o, "run", "--once", NULL), 5);
    fixture_assert_contains(o.err, "NOAUTH");
    fixture_file(path, sizeof path, "wrong", 0600);
    fixture_env("LEDGERLOCK_REDIS_PASSWORD_FILE", path);
    assert_int_equal(fixture_run(&f, &o, "run", "--once", NULL), 5);
    fixture_assert_contains(o.err, "WRONGPASS");
    assert_int_equal(pool_work_done(&f), 0);
    (void)unlink(path);
}

/* A refusal is neither free nor busy: no batch until the rights are back. */
static void fail_closed_rights_taken_midway_nothing_is_charged(void **state)
{
    int64_t done, granted;
    char reply[32];

    (void)state;
    use_own_redis();
    start_midway();
    pool_redis(redis.url, reply, sizeof reply, "ACL SETUSER default -evalsha");
    pool_log_wait(&pool, "event=pool.redis_down", 5);
    fixture_pause_ms(1500); /* what is in flight ends, and is reported */
    done = pool_work_done(&f);
    granted = pool_counter(&f, "granted");
    fixture_pause_ms(1500);
    assert_int_equal(pool_work_done(&f), done);
    assert_int_equal(pool_counter(&f, "granted"), granted);
    assert_true(done < pool_work_all(&work));
    pool_redis(redis.url, reply, sizeof reply, "ACL SETUSER default +@all");
    checker_healed(&checker);
    pool_log_wait(&pool, "event=pool.redis_up", 10);
    finish_exactly();
    assert_said_once("event=pool.redis_down", "event=pool.redis_up");
}

static int open_servers(void **state)
{
    (void)state;
    private_pg_open(&postgres);
    return 0;
}

static int close_servers(void **state)
{
    (void)state;
    private_pg_close(&postgres);
    return 0;
}

#define OUTAGE_TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        OUTAGE_TEST(postgres_killed_and_started_again_pool_resumes),
        OUTAGE_TEST(postgres_sessions_terminated_pool_goes_on),
        OUTAGE_TEST(postgres_in_a_black_hole_pool_waits_and_resumes),
        OUTAGE_TEST(redis_restart_empty_pool_raises_the_epoch_and_resumes),
        OUTAGE_TEST(redis_back_while_nothing_is_due_is_said),
        OUTAGE_TEST(flushall_while_held_ten_times_a_second_totals_are_exact),
        OUTAGE_TEST(fail_closed_redis_down_at_start_says_so_and_exits_5),
        OUTAGE_TEST(fail_closed_wrong_password_at_start_says_so_and_charges_nothing),
        OUTAGE_TEST(fail_closed_rights_taken_midway_nothing_is_charged),
    };

    fixture_need_servers();
    points_program();
    return cmocka_run_group_tests(tests, open_servers, close_servers);
}
