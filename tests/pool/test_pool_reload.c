/* pool: a new configuration by HUP, refused or taken over, and rights that are taken
 * away while it runs. */
#include "tests/lib/steps.h"

static const struct pool_work small = {
    .users = 200, .periods = 3, .orders = 60, .units = 40};

WORLD(.poll_ms = 100, .work = &small);

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
    fixture_file(path, size, "pool: { jobs = \"billing\"; batch = 7; };\n", 0600);
    pool_start("run -w 3 --now %s -c %s", pool_work_now(), path);
    pool_work_wait((int64_t)small.users * small.periods);
    pool_wait_children(world.pool.pid, 3);
}

/* Guarantee: A broken file at HUP is refused in words, and the running pool keeps
 * its configuration. */
CASE(hup_with_broken_file_keeps_the_old_configuration)
{
    pid_t before[POOL_CHILDREN], after[POOL_CHILDREN];
    char path[64], where[128];

    start_with_file(path, sizeof path);
    (void)pool_children(world.pool.pid, before);
    write_config(path, "pool: {\n  jobs = \"orders\";\n  workers = 300;\n};\n");
    (void)kill(world.pool.pid, SIGHUP);
    pool_log_wait(&world.pool, "event=pool.reload_refused");
    (void)snprintf(where, sizeof where, "%s:3: ", path);
    pool_log_wait(&world.pool, where);
    fixture_pause_ms(300);
    assert_int_equal(pool_children(world.pool.pid, after), 3);
    assert_memory_equal(before, after, 3 * sizeof before[0]);
    assert_int_equal(pool_work_done(), small.users * small.periods);
    pool_stop();
    (void)unlink(path);
}

static int64_t largest_batch(void)
{
    return world_ask("SELECT max(n) FROM (SELECT count(*) AS n FROM charges GROUP BY"
                     " fence) AS batches");
}

CASE(hup_with_good_file_replaces_workers_one_by_one)
{
    pid_t before[POOL_CHILDREN], now[POOL_CHILDREN];
    size_t fewest = 3, old = 3;
    int64_t deadline = fixture_now_ms() + POOL_WAIT_MS;
    char path[64];

    start_with_file(path, sizeof path);
    (void)pool_children(world.pool.pid, before);
    assert_in_range(largest_batch(), 1, 7);
    write_config(path, "pool: { jobs = \"billing\"; batch = 500; };\n");
    (void)kill(world.pool.pid, SIGHUP);
    while (old > 0 && fixture_now_ms() < deadline) {
        size_t n = pool_children(world.pool.pid, now);

        if (n < 2) /* the list may leave one out while another ends */
            n = pool_children(world.pool.pid, now);
        fewest = n < fewest ? n : fewest;
        old = 0;
        for (size_t i = 0; i < n; i++)
            old += pool_has(before, 3, now[i]);
        fixture_pause_ms(1);
    }
    assert_int_equal(old, 0);
    assert_in_range(fewest, 2, 3);
    pool_logged(1, "event=pool.reloaded");
    pool_logged(0, "event=pool.worker_died");
    world_do(INTO_ANY_SUBSCRIPTIONS "SELECT user_id, 'more', 1, currency,"
                                    " '2020-01-01Z', 'year', '2020-01-01Z' FROM users");
    pool_work_wait((int64_t)small.users * (small.periods + 1));
    assert_in_range(largest_batch(), 8, 500);
    pool_stop();
    (void)unlink(path);
}

static void reload_with(const char *path, const char *text)
{
    write_config(path, text);
    (void)kill(world.pool.pid, SIGHUP);
}

CASE(hup_takes_over_the_level_of_the_log_unless_refused)
{
    char path[64];

    fixture_file(path, sizeof path, "log: { level = \"warn\"; };\n", 0600);
    pool_start("run -w 2 --now %s -c %s", pool_work_now(), path);
    pool_work_wait(pool_work_all());
    pool_logged(0, "level=info");
    reload_with(path, "log: { level = \"info\"; };\n");
    pool_log_wait(&world.pool, "event=pool.reloaded");
    reload_with(path, "log: { level = \"error\"; };\nimport: { currency = \"EUR\"; };");
    pool_log_wait(&world.pool, "event=pool.reload_refused");
    (void)kill(world.pool.pid, SIGTERM);
    pool_log_wait(&world.pool, "event=pool.draining");
    pool_assert_ends(&world.pool, 0);
    (void)unlink(path);
}

/* ---- given up ---- */

/* Guarantee: A pool whose rights in PostgreSQL are taken says which and exits 6. */
CASE(pool_whose_rights_are_taken_gives_up_with_6)
{
    pool_start("run --now %s", pool_work_now());
    pool_work_wait(pool_work_all());
    world_do("REVOKE SELECT ON ledgerlock.subscriptions FROM ledgerlock_worker");
    pool_assert_ends(&world.pool, 6);
    pool_log_wait(&world.pool, "event=pool.giving_up");
    pool_log_wait(&world.pool, "permission denied");
}
