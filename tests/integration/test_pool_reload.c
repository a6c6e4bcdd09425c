/* pool: a new configuration by HUP, refused or taken over, and rights that are taken
 * away while it runs. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/pool_world.h"

static struct fixture f;
static struct fixture_child pool;

static const struct pool_work small = {
    .users = 200, .periods = 3, .orders = 60, .units = 40};

static int open_world(void **state)
{
    (void)state;
    fixture_open_migrated(&f);
    fixture_become(&f, "ledgerlock_worker");
    fixture_env("LEDGERLOCK_POOL_POLL_MS", "100");
    pool_work_put(&f, &small);
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

static bool has_pid(const pid_t *pids, size_t n, pid_t pid)
{
    for (size_t i = 0; i < n; i++) {
        if (pids[i] == pid)
            return true;
    }
    return false;
}

/* ---- reload ---- */

static void write_config(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void start_with_file(char *path, size_t size)
{
    fixture_file(path, size, "pool: { jobs = \"billing\"; };\n", 0600);
    fixture_spawn(&f, &pool, "run", "-w", "3", "--now", pool_work_now(&small), "-c",
                  path, NULL);
    pool_work_wait(&f, (int64_t)small.users * small.periods, 20);
    pool_wait_children(pool.pid, 3, 5);
}

static void hup_with_broken_file_keeps_the_old_configuration(void **state)
{
    pid_t before[POOL_CHILDREN], after[POOL_CHILDREN];
    char path[64], where[128];

    (void)state;
    start_with_file(path, sizeof path);
    (void)pool_children(pool.pid, before);
    write_config(path, "pool: {\n  jobs = \"orders\";\n  workers = 0;\n};\n");
    (void)kill(pool.pid, SIGHUP);
    pool_log_wait(&pool, "event=pool.reload_refused", 5);
    (void)snprintf(where, sizeof where, "%s:3: ", path);
    pool_log_wait(&pool, where, 1);
    fixture_pause_ms(300);
    assert_int_equal(pool_children(pool.pid, after), 3);
    assert_memory_equal(before, after, 3 * sizeof before[0]);
    assert_int_equal(pool_work_done(&f), small.users * small.periods);
    (void)kill(pool.pid, SIGTERM);
    pool_assert_ends(&pool, 0, 10);
    (void)unlink(path);
}

static void hup_with_good_file_replaces_workers_one_by_one(void **state)
{
    pid_t before[POOL_CHILDREN], now[POOL_CHILDREN];
    size_t fewest = 3, old = 3;
    int64_t deadline = pool_now_ms() + 20000;
    char path[64];

    (void)state;
    start_with_file(path, sizeof path);
    (void)pool_children(pool.pid, before);
    write_config(path, "pool: { jobs = \"billing,orders\"; };\n");
    (void)kill(pool.pid, SIGHUP);
    while (old > 0 && pool_now_ms() < deadline) {
        size_t n = pool_children(pool.pid, now);

        fewest = n < fewest ? n : fewest;
        old = 0;
        for (size_t i = 0; i < n; i++)
            old += has_pid(before, 3, now[i]);
    }
    assert_int_equal(old, 0);
    assert_in_range(fewest, 2, 3);
    assert_int_equal(pool_log_count(&pool, "event=pool.reloaded"), 1);
    assert_int_equal(pool_log_count(&pool, "event=pool.worker_died"), 0);
    pool_work_wait(&f, pool_work_all(&small), 10); /* with the new jobs */
    (void)kill(pool.pid, SIGTERM);
    pool_assert_ends(&pool, 0, 10);
    pool_work_assert_exact(&f, &small);
    (void)unlink(path);
}

static void reload_with(const char *path, const char *text)
{
    write_config(path, text);
    (void)kill(pool.pid, SIGHUP);
}

static void hup_takes_over_the_level_of_the_log_unless_refused(void **state)
{
    char path[64];

    (void)state;
    fixture_file(path, sizeof path, "log: { level = \"warn\"; };\n", 0600);
    fixture_spawn(&f, &pool, "run", "-w", "2", "--now", pool_work_now(&small), "-c",
                  path, NULL);
    pool_work_wait(&f, pool_work_all(&small), 20);
    assert_int_equal(pool_log_count(&pool, "level=info"), 0);
    reload_with(path, "log: { level = \"info\"; };\n");
    pool_log_wait(&pool, "event=pool.reloaded", 5);
    reload_with(path, "log: { level = \"error\"; };\nimport: { currency = \"EUR\"; };");
    pool_log_wait(&pool, "event=pool.reload_refused", 5);
    (void)kill(pool.pid, SIGTERM);
    pool_log_wait(&pool, "event=pool.draining", 5);
    pool_assert_ends(&pool, 0, 15);
    (void)unlink(path);
}

/* ---- given up ---- */

static void pool_whose_rights_are_taken_gives_up_with_6(void **state)
{
    char owner[FIXTURE_URL];

    (void)state;
    fixture_spawn(&f, &pool, "run", "--now", pool_work_now(&small), NULL);
    pool_work_wait(&f, pool_work_all(&small), 20);
    fixture_url_as(&f, "ledgerlock_owner", owner, sizeof owner);
    fixture_exec(owner, "REVOKE SELECT ON ledgerlock.subscriptions FROM "
                        "ledgerlock_worker");
    pool_assert_ends(&pool, 6, 10);
    pool_log_wait(&pool, "event=pool.giving_up", 1);
    pool_log_wait(&pool, "permission denied", 1);
}

#define RELOAD_TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RELOAD_TEST(hup_with_broken_file_keeps_the_old_configuration),
        RELOAD_TEST(hup_with_good_file_replaces_workers_one_by_one),
        RELOAD_TEST(hup_takes_over_the_level_of_the_log_unless_refused),
        RELOAD_TEST(pool_whose_rights_are_taken_gives_up_with_6),
    };

    fixture_need_servers();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
