/* pool: real processes of `ledgerlock run`: drained, killed, orphaned, alone
 * with process 1; and the totals are exact whatever happened. */
#define _GNU_SOURCE /* setns */
#include <fcntl.h>
#include <libpq-fe.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/pool_world.h"

static struct fixture f;
static struct fixture_child pool;

static int open_world(void **state)
{
    (void)state;
    fixture_open_migrated(&f);
    fixture_become(&f, "ledgerlock_worker");
    fixture_env("LEDGERLOCK_LOCKS_LEASE_MS", "2000");
    fixture_env("LEDGERLOCK_POOL_POLL_MS", "100");
    fixture_env("LEDGERLOCK_POOL_BATCH", "5");
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

static const struct pool_work small = {
    .users = 200, .periods = 3, .orders = 60, .units = 40};
static const struct pool_work large = {
    .users = 200, .periods = 12, .orders = 200, .units = 120};

static void finish(const struct pool_work *work)
{
    static struct fixture_output o;

    if (fixture_run(&f, &o, "run", "--once", "-w", "4", "--batch", "500", "--now",
                    pool_work_now(work), NULL) != 0)
        fail_msg("run --once: exit %d: %s", o.code, o.err);
}

/* A pool that is in the middle of its work. */
static void start_midway(const struct pool_work *work)
{
    pool_work_put(&f, work);
    fixture_spawn(&f, &pool, "run", "-w", "4", "--now", pool_work_now(work), NULL);
    pool_work_wait(&f, 100, 10);
}

/* ---- told to stop ---- */

static void assert_signal_drains(int sig, const char *words)
{
    int64_t at;

    start_midway(&large);
    at = pool_now_ms();
    (void)kill(pool.pid, sig);
    pool_assert_ends(&pool, 0, 10);
    assert_in_range(pool_now_ms() - at, 0, 8000);
    assert_true(pool_work_done(&f) < pool_work_all(&large)); /* it was midway */
    assert_int_equal(pool_lock_keys(&f), 0);
    assert_int_equal(pool_log_count(&pool, words), 1);
    assert_int_equal(pool_log_count(&pool, "event=pool.killed"), 0);
    assert_int_equal(pool_incidents(&f, "lost", ""), 0);
    finish(&large);
    pool_work_assert_exact(&f, &large);
}

static void pool_after_term_finishes_its_batches_and_exits_0(void **state)
{
    (void)state;
    assert_signal_drains(SIGTERM, "event=pool.draining pid=");
}

static void pool_after_int_finishes_its_batches_and_exits_0(void **state)
{
    (void)state;
    assert_signal_drains(SIGINT, "signal=INT grace_ms=8000");
}

/* A session that holds the table of transfers, so that every batch hangs in its
 * effects. */
static PGconn *hold_transfers(void)
{
    char url[FIXTURE_URL];
    PGconn *conn;
    PGresult *res;

    fixture_url_as(&f, "ledgerlock_owner", url, sizeof url);
    conn = PQconnectdb(url);
    res =
        PQexec(conn, "BEGIN; LOCK TABLE ledgerlock.transfers IN ACCESS EXCLUSIVE MODE");
    assert_int_equal(PQresultStatus(res), PGRES_COMMAND_OK);
    PQclear(res);
    return conn;
}

static void wait_for_hanging_batch(void)
{
    for (int i = 0; i < 500; i++) {
        if (fixture_query_int8(f.url, "SELECT count(*) FROM pg_stat_activity WHERE"
                                      " datname = current_database() AND"
                                      " wait_event_type = 'Lock'") > 0)
            return;
        fixture_pause_ms(10);
    }
    fail_msg("no worker hangs");
}

static void pool_after_second_signal_ends_at_once(void **state)
{
    PGconn *holder;
    int64_t at;

    (void)state;
    fixture_env("LEDGERLOCK_LOCKS_LEASE_MS", "3000"); /* it hangs up to 750 ms */
    start_midway(&large);
    holder = hold_transfers();
    wait_for_hanging_batch();
    (void)kill(pool.pid, SIGTERM);
    fixture_pause_ms(50);
    assert_true(pool_is_alive(pool.pid)); /* it waits for the batch in flight */
    at = pool_now_ms();
    (void)kill(pool.pid, SIGTERM);
    assert_int_not_equal(fixture_reap(pool.pid, 5), -1);
    assert_in_range(pool_now_ms() - at, 0, 1000);
    assert_int_equal(pool_log_count(&pool, "event=pool.stopping_at_once"), 1);
    pool.pid = 0;
    PQfinish(holder);
    assert_true(pool_lock_keys(&f) > 0); /* left to their leases */
    finish(&large);
    pool_work_assert_exact(&f, &large);
}

/* ---- killed ---- */

static bool has_pid(const pid_t *pids, size_t n, pid_t pid)
{
    for (size_t i = 0; i < n; i++) {
        if (pids[i] == pid)
            return true;
    }
    return false;
}

/* Kills the first worker; asserts that within a second there are as many as before. */
static void kill_one_and_await_another(void)
{
    pid_t pids[POOL_CHILDREN];
    size_t n = pool_children(pool.pid, pids);
    pid_t victim = pids[0];
    int64_t deadline = pool_now_ms() + 1000;

    assert_int_equal(n, 4);
    (void)kill(victim, SIGKILL);
    do {
        if (pool_now_ms() > deadline)
            fail_msg("worker %ld was not replaced within 1 s", (long)victim);
        fixture_pause_ms(2);
        n = pool_children(pool.pid, pids);
    } while (n != 4 || has_pid(pids, n, victim));
}

static void worker_killed_is_replaced_within_a_second(void **state)
{
    (void)state;
    start_midway(&large);
    for (int i = 0; i < 3; i++)
        kill_one_and_await_another();
    assert_int_equal(pool_log_count(&pool, "event=pool.worker_died"), 3);
    assert_int_equal(pool_log_count(&pool, " signal=9 restart_in_ms="), 3);
    assert_true(pool_work_done(&f) < pool_work_all(&large)); /* killed midway */
    pool_work_wait(&f, pool_work_all(&large), 30);
    (void)kill(pool.pid, SIGTERM);
    pool_assert_ends(&pool, 0, 10);
    assert_int_equal(pool_log_count(&pool, " restarts=3 "), 1);
    pool_work_assert_exact(&f, &large);
}

/* Two, so that the first of them is behind it. */
static void wait_for_charges_of(int incarnation)
{
    int64_t deadline = pool_now_ms() + 10000;
    char sql[128];

    (void)snprintf(
        sql, sizeof sql,
        "SELECT count(*) FROM ledgerlock.charges WHERE worker LIKE '%%.0.%d'",
        incarnation);
    while (fixture_query_int8(f.url, sql) < 2) {
        if (pool_now_ms() > deadline)
            fail_msg("incarnation %d charged too little", incarnation);
        fixture_pause_ms(2);
    }
}

/* More deaths than a pool allows a worker that gets nowhere: this one gets somewhere.
 */
static void worker_killed_whenever_it_charged_is_never_given_up(void **state)
{
    pid_t pids[POOL_CHILDREN];

    (void)state;
    fixture_env("LEDGERLOCK_POOL_BATCH", "1");
    fixture_env("LEDGERLOCK_POOL_QUARANTINE_AFTER", "0"); /* no row is to blame */
    pool_work_put(&f, &large);
    fixture_spawn(&f, &pool, "run", "-w", "1", "--now", pool_work_now(&large), NULL);
    for (int i = 1; i <= 12; i++) {
        wait_for_charges_of(i);
        assert_int_equal(pool_children(pool.pid, pids), 1);
        (void)kill(pids[0], SIGKILL);
    }
    wait_for_charges_of(13);
    assert_int_equal(pool_log_count(&pool, " signal=9 restart_in_ms=0"), 12);
    (void)kill(pool.pid, SIGTERM);
    pool_assert_ends(&pool, 0, 10);
    finish(&large);
    pool_work_assert_exact(&f, &large);
}

static void supervisor_killed_takes_its_workers_with_it(void **state)
{
    pid_t pids[POOL_CHILDREN];
    size_t n, alive = 1;
    int64_t deadline;

    (void)state;
    start_midway(&large);
    n = pool_children(pool.pid, pids);
    assert_int_equal(n, 4);
    (void)kill(pool.pid, SIGKILL);
    (void)waitpid(pool.pid, NULL, 0);
    pool.pid = 0;
    assert_true(pool_work_done(&f) < pool_work_all(&large)); /* killed midway */
    for (deadline = pool_now_ms() + 2000; alive > 0 && pool_now_ms() < deadline;) {
        fixture_pause_ms(10);
        alive = 0;
        for (size_t i = 0; i < n; i++)
            alive += pool_is_alive(pids[i]);
    }
    assert_int_equal(alive, 0);
    finish(&large);
    pool_work_assert_exact(&f, &large);
}

/* ---- process 1 ---- */

static bool may_unshare(void)
{
    return system("unshare --pid --fork --mount-proc true 2>/dev/null") == 0;
}

/* Runs the pool as process 1 of a namespace of its own; returns its pid out here. */
static pid_t start_as_process_1(void)
{
    char wrapper[64], text[4400];
    const char *program = fixture_program();
    const char *before = getenv("LEDGERLOCK_TEST_BIN");
    char *kept = before != NULL ? strdup(before) : NULL;
    pid_t pids[POOL_CHILDREN] = {0};

    (void)snprintf(text, sizeof text,
                   "#!/bin/sh\nexec unshare --pid --fork --mount-proc --kill-child "
                   "'%s' \"$@\"\n",
                   program);
    fixture_file(wrapper, sizeof wrapper, text, 0700);
    (void)setenv("LEDGERLOCK_TEST_BIN", wrapper, 1);
    fixture_spawn(&f, &pool, "run", "-w", "2", "--now", pool_work_now(&small), NULL);
    if (kept != NULL)
        (void)setenv("LEDGERLOCK_TEST_BIN", kept, 1);
    else
        (void)unsetenv("LEDGERLOCK_TEST_BIN");
    free(kept);
    pool_log_wait(&pool, "event=pool.started pid=1 ", 10);
    (void)unlink(wrapper);
    assert_int_equal(pool_children(pool.pid, pids), 1);
    return pids[0];
}

/* A process in the pool's namespace whose parent is gone: process 1 gets it. */
static void plant_orphan(pid_t process_1)
{
    char path[64];
    pid_t helper = fork();

    assert_true(helper >= 0);
    if (helper == 0) {
        (void)snprintf(path, sizeof path, "/proc/%ld/ns/pid", (long)process_1);
        if (setns(open(path, O_RDONLY), CLONE_NEWPID) != 0)
            _exit(1);
        helper = fork();
        if (helper == 0 && fork() == 0)
            fixture_pause_ms(500);
        else if (helper > 0)
            (void)waitpid(helper, NULL, 0);
        _exit(0);
    }
    assert_int_equal(fixture_reap(helper, 5), 0);
}

static void pool_as_process_1_reaps_orphans_and_obeys_term(void **state)
{
    pid_t process_1;

    (void)state;
    if (!may_unshare()) {
        print_message("SKIPPED: a namespace of its own is not allowed here, so nothing "
                      "is known of the pool as process 1\n");
        skip();
    }
    pool_work_put(&f, &small);
    process_1 = start_as_process_1();
    pool_wait_children(process_1, 2, 5);
    plant_orphan(process_1);
    pool_wait_children(process_1, 3, 2); /* adopted */
    pool_wait_children(process_1, 2, 2); /* reaped: a zombie would stay in the list */
    pool_work_wait(&f, pool_work_all(&small), 20);
    (void)kill(process_1, SIGTERM);
    pool_assert_ends(&pool, 0, 10);
    assert_int_equal(pool_log_count(&pool, "event=pool.worker_died"), 0);
    pool_work_assert_exact(&f, &small);
}

/* ---- once ---- */

static void once_waits_for_what_others_hold_and_then_returns(void **state)
{
    static struct fixture_output o;
    char command[160], reply[32];
    int64_t at;

    (void)state;
    pool_work_put(&f, &small);
    (void)snprintf(command, sizeof command, "SET %suser:7 another NX PX 1500",
                   f.prefix);
    at = pool_now_ms();
    pool_redis(f.redis_url, reply, sizeof reply, command);
    assert_string_equal(reply, "OK");
    assert_int_equal(
        fixture_run(&f, &o, "run", "--once", "--now", pool_work_now(&small), NULL), 0);
    assert_true(pool_now_ms() - at >= 1500);
    assert_true(pool_counter(&f, "busy") > 0);
    pool_work_assert_exact(&f, &small);
    at = pool_now_ms();
    finish(&small);
    assert_in_range(pool_now_ms() - at, 0, 3000);
}

#define POOL_TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        POOL_TEST(pool_after_term_finishes_its_batches_and_exits_0),
        POOL_TEST(pool_after_int_finishes_its_batches_and_exits_0),
        POOL_TEST(pool_after_second_signal_ends_at_once),
        POOL_TEST(worker_killed_is_replaced_within_a_second),
        POOL_TEST(worker_killed_whenever_it_charged_is_never_given_up),
        POOL_TEST(supervisor_killed_takes_its_workers_with_it),
        POOL_TEST(pool_as_process_1_reaps_orphans_and_obeys_term),
        POOL_TEST(once_waits_for_what_others_hold_and_then_returns),
    };

    fixture_need_servers();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
