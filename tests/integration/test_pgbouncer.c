/* pgbouncer: the whole program behind a pooler that gives a session to a transaction
 * only, and the refusal when it was not told of one. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/pg.h"
#include "tests/lib/pgbouncer.h"
#include "tests/lib/pool_world.h"

enum { WORKERS = 8, SESSIONS = 4 };

static struct fixture f;
static struct fixture_child pool;
static struct fixture_redis redis;
static struct pgbouncer bouncer;
static struct fixture_output o;

static const struct pool_work work = {
    .users = 200, .periods = 12, .orders = 200, .units = 120};

static void go_through(const char *role)
{
    pgbouncer_url(&bouncer, &f, role, f.url, sizeof f.url);
}

static void open_behind(const char *mode, int sessions)
{
    fixture_open_migrated(&f);
    pgbouncer_open(&bouncer, mode, sessions);
    fixture_env("LEDGERLOCK_POSTGRES_PASSWORD_FILE", bouncer.password_file);
    fixture_env("LEDGERLOCK_LOCKS_LEASE_MS", "4000");
    fixture_env("LEDGERLOCK_POOL_BATCH", "5");
    fixture_env("LEDGERLOCK_POOL_POLL_MS", "100");
}

static int open_world(void **state)
{
    (void)state;
    open_behind("transaction", SESSIONS);
    fixture_env("LEDGERLOCK_POSTGRES_POOLING", "transaction");
    return 0;
}

static int open_lasting_world(void **state)
{
    (void)state;
    open_behind("session", WORKERS + 4);
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
    pgbouncer_close(&bouncer);
    fixture_redis_close(&redis);
    fixture_close(&f);
    return 0;
}

static int64_t ask(const char *sql)
{
    char url[FIXTURE_URL];

    fixture_url_as(&f, "postgres", url, sizeof url);
    return fixture_query_int8(url, sql);
}

static void start_pool(void)
{
    pool_work_put(&f, &work);
    go_through("ledgerlock_worker");
    fixture_spawn(&f, &pool, "run", "-w", "8", "--now", pool_work_now(&work), NULL);
}

static void stop_pool(void)
{
    (void)kill(pool.pid, SIGTERM);
    pool_assert_ends(&pool, 0, 10);
}

/* Sessions of the workers' role, whatever they do. */
static int64_t sessions(void)
{
    return ask("SELECT count(*) FROM pg_stat_activity WHERE datname = '' || "
               "current_database() AND usename = 'ledgerlock_worker'");
}

/* ---- the pool ---- */

static void pool_of_eight_shares_four_sessions_and_is_exact(void **state)
{
    pid_t pids[POOL_CHILDREN];
    int64_t most = 0;

    (void)state;
    start_pool();
    for (int64_t n; pool_work_done(&f) < pool_work_all(&work); fixture_pause_ms(5)) {
        n = sessions();
        most = n > most ? n : most;
    }
    assert_in_range(most, 2, SESSIONS);
    assert_int_equal(pool_children(pool.pid, pids), WORKERS);
    assert_int_equal(pool_listener(pool.pid), 0);
    stop_pool();
    assert_int_equal(pool_log_count(&pool, "level=error"), 0);
    assert_int_equal(pool_log_count(&pool, "event=pool.worker_died"), 0);
    pool_work_assert_exact(&f, &work);
}

static void worker_killed_behind_a_pooler_leaves_exact_totals(void **state)
{
    pid_t pids[POOL_CHILDREN];

    (void)state;
    start_pool();
    for (int done = 100; done <= 500; done += 100) {
        pool_work_wait(&f, done, 20);
        assert_true(pool_children(pool.pid, pids) > 0);
        (void)kill(pids[0], SIGKILL);
    }
    pool_work_wait(&f, pool_work_all(&work), 60);
    assert_true(pool_log_count(&pool, "event=pool.worker_died") >= 3);
    stop_pool();
    pool_work_assert_exact(&f, &work);
}

/* Eight workers see the loss; the turn that one of them takes spans transactions. */
static void redis_flushed_behind_a_pooler_raises_the_epoch_once(void **state)
{
    char reply[32];
    int64_t epoch;

    (void)state;
    fixture_redis_start(&redis, NULL);
    (void)snprintf(f.redis_url, sizeof f.redis_url, "%s", redis.url);
    start_pool();
    pool_work_wait(&f, 100, 20);
    epoch = ask("SELECT epoch FROM ledgerlock.lock_epoch");
    pool_redis(redis.url, reply, sizeof reply, "FLUSHALL");
    pool_work_wait(&f, pool_work_all(&work), 60);
    assert_int_equal(ask("SELECT epoch FROM ledgerlock.lock_epoch"), epoch + 1);
    assert_int_equal(ask("SELECT count(*) FROM ledgerlock.lock_epoch WHERE raiser IS "
                         "NOT NULL"),
                     0);
    stop_pool();
    pool_work_assert_exact(&f, &work);
}

/* ---- settings ---- */

static void text_of(struct pg *pg, const char *sql, char *text, size_t size)
{
    struct pg_result *res;
    struct err e = {0};

    if (pg_exec_text(pg, sql, &res, &e) != 0)
        fail_msg("%s: %s", sql, e.msg);
    (void)snprintf(text, size, "%s", pg_get_text(res, 0, 0));
    pg_result_free(res);
}

static struct pg *open_pg(bool transaction_pooling)
{
    char url[FIXTURE_URL];
    const struct pg_options options = {.url = url,
                                       .password_file = bouncer.password_file,
                                       .name = "test",
                                       .answer_ms = 5000,
                                       .lock_ms = 1234,
                                       .plans_once = true,
                                       .transaction_pooling = transaction_pooling};
    struct err e = {0};
    struct pg *pg;

    if (transaction_pooling)
        pgbouncer_url(&bouncer, &f, "ledgerlock_worker", url, sizeof url);
    else
        fixture_url_as(&f, "ledgerlock_worker", url, sizeof url);
    if (pg_open(&pg, &options, &e) != 0)
        fail_msg("%s", e.msg);
    return pg;
}

static const char settings[] =
    "SELECT concat_ws(' ', current_setting('lock_timeout'), "
    "current_setting('enable_seqscan'), current_setting('enable_indexonlyscan'), "
    "current_setting('plan_cache_mode'), "
    "current_setting('TimeZone'))";

static void settings_behind_a_pooler_last_for_the_transaction(void **state)
{
    struct pg *pg = open_pg(true);
    struct err e = {0};
    char text[64];

    (void)state;
    assert_int_equal(pg_begin(pg, &e), 0);
    text_of(pg, settings, text, sizeof text);
    assert_string_equal(text, "1234ms off off force_generic_plan UTC");
    assert_int_equal(pg_commit(pg, &e), 0);
    text_of(pg, settings, text, sizeof text);
    assert_null(strstr(text, "1234ms off"));
    pg_close(pg);
}

static void settings_of_a_session_of_our_own_last(void **state)
{
    struct pg *pg = open_pg(false);
    struct err e = {0};
    char text[64];

    (void)state;
    assert_int_equal(pg_begin(pg, &e), 0);
    assert_int_equal(pg_commit(pg, &e), 0);
    text_of(pg, settings, text, sizeof text);
    assert_string_equal(text, "1234ms off off force_generic_plan UTC");
    pg_close(pg);
}

/* ---- the other verbs ---- */

static void assert_works(const char *role, const char *verb, const char *word)
{
    go_through(role);
    if (fixture_run(&f, &o, verb, word, NULL) != 0)
        fail_msg("%s: exit %d: %s%s", verb, o.code, o.out, o.err);
}

static void every_verb_works_behind_a_pooler(void **state)
{
    char csv[64];

    (void)state;
    fixture_exec(f.url, "DROP SCHEMA ledgerlock CASCADE");
    assert_works("ledgerlock_owner", "migrate", NULL);
    assert_works("ledgerlock_owner", "migrate", NULL);
    go_through("ledgerlock_owner");
    assert_int_equal(fixture_run(&f, &o, "seed", "--users", "50", "--subscriptions",
                                 "100", "--skus", "20", "--orders", "200", NULL),
                     0);
    fixture_file(csv, sizeof csv, "sku,quantity,unit_price\nnew,5,1.50\n", 0600);
    go_through("ledgerlock_owner");
    assert_int_equal(fixture_run(&f, &o, "import", "--stock", csv, NULL), 0);
    (void)unlink(csv);
    assert_works("ledgerlock_worker", "run", "--once");
    assert_works("ledgerlock_worker", "audit", NULL);
    assert_works("ledgerlock_worker", "status", NULL);
    assert_works("ledgerlock_worker", "locks", NULL);
}

static void migrate_ten_at_once_behind_a_pooler_applies_once(void **state)
{
    struct fixture_child children[10];
    int applied = 0;

    (void)state;
    fixture_exec(f.url, "DROP SCHEMA ledgerlock CASCADE");
    go_through("ledgerlock_owner");
    for (size_t i = 0; i < 10; i++)
        fixture_spawn(&f, &children[i], "migrate", NULL);
    for (size_t i = 0; i < 10; i++) {
        if (fixture_wait(&children[i], 60, &o) != 0)
            fail_msg("exit %d: %s", o.code, o.err);
        applied += strstr(o.out, "applied migration 001_schema") != NULL;
    }
    assert_int_equal(applied, 1);
}

/* ---- told nothing ---- */

static void assert_refused(void)
{
    assert_int_equal(fixture_run(&f, &o, "run", "--once", "--pooling", "session", NULL),
                     3);
    fixture_assert_contains(o.err, "set postgres.pooling to transaction");
}

static void pooler_that_nobody_told_of_is_refused(void **state)
{
    (void)state;
    go_through("ledgerlock_worker");
    assert_refused();
    assert_int_equal(fixture_run(&f, &o, "status", "--pooling", "session", NULL), 3);
    fixture_assert_contains(o.err, "set postgres.pooling to transaction");
}

static void pooler_that_is_busy_is_refused_too(void **state)
{
    (void)state;
    start_pool();
    pool_work_wait(&f, 100, 20);
    assert_refused();
    assert_true(pool_work_done(&f) < pool_work_all(&work)); /* it was busy */
    pool_work_wait(&f, pool_work_all(&work), 60);
    stop_pool();
    pool_work_assert_exact(&f, &work);
}

static void pooler_of_whole_sessions_is_as_good_as_none(void **state)
{
    (void)state;
    start_pool();
    pool_work_wait(&f, pool_work_all(&work), 60);
    assert_true(pool_listener(pool.pid) > 0);
    stop_pool();
    pool_work_assert_exact(&f, &work);
}

#define BEHIND(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        BEHIND(pool_of_eight_shares_four_sessions_and_is_exact),
        BEHIND(worker_killed_behind_a_pooler_leaves_exact_totals),
        BEHIND(redis_flushed_behind_a_pooler_raises_the_epoch_once),
        BEHIND(settings_behind_a_pooler_last_for_the_transaction),
        BEHIND(settings_of_a_session_of_our_own_last),
        BEHIND(every_verb_works_behind_a_pooler),
        BEHIND(migrate_ten_at_once_behind_a_pooler_applies_once),
        BEHIND(pooler_that_nobody_told_of_is_refused),
        BEHIND(pooler_that_is_busy_is_refused_too),
        cmocka_unit_test_setup_teardown(pooler_of_whole_sessions_is_as_good_as_none,
                                        open_lasting_world, close_world),
    };

    fixture_need_servers();
    if (!pgbouncer_is_there()) {
        (void)printf("skipped: pgbouncer is not installed; scripts/setup does it\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
