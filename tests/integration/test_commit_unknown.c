/* commit unknown: the connection is cut exactly before or after COMMIT, or in the
 * middle of the work: each time it is found out what became of the work, and the totals
 * are exact. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "tests/lib/checker.h"
#include "tests/lib/points.h"
#include "tests/lib/pool_world.h"
#include "tests/lib/proxy.h"

enum { CUTS = 10 };

static struct fixture f;       /* the server itself */
static struct fixture through; /* the same database, through the proxy */
static struct proxy proxy;
static struct fixture_child pool;
static struct checker checker;

static const struct pool_work work = {
    .users = 200, .periods = 9, .orders = 200, .units = 120};

static int open_world(void **state)
{
    (void)state;
    fixture_open_migrated(&f);
    checker_open(&checker);
    fixture_become(&f, "ledgerlock_worker");
    fixture_env("LEDGERLOCK_LOCKS_LEASE_MS", "1500");
    fixture_env("LEDGERLOCK_POOL_POLL_MS", "50");
    fixture_env("LEDGERLOCK_POOL_BATCH", "5");
    pool_work_put(&f, &work);
    through = f;
    proxy_open_postgres(&proxy, &through);
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
    fixture_close(&f);
    checker_close(&checker);
    return 0;
}

static void start(const char *workers)
{
    fixture_spawn(&through, &pool, "run", "-w", workers, "--now", pool_work_now(&work),
                  NULL);
}

static void start_midway(void)
{
    start("4");
    pool_work_wait(&f, 50, 10);
}

/* The pool's own count, in its last line, is what stands in the rows: nothing counted
 * twice or forgotten on the way through unknown outcomes. */
static void assert_said_done(int charged, int decided)
{
    int sold = decided < work.units ? decided : work.units;
    char words[128];

    (void)snprintf(words, sizeof words,
                   " charged=%d declined=0 fulfilled=%d rejected=%d ", charged, sold,
                   decided - sold);
    assert_int_equal(pool_log_count(&pool, "event=pool.done"), 1);
    pool_log_wait(&pool, words, 0);
}

static void finish_exactly(void)
{
    pool_work_wait(&f, pool_work_all(&work), 30);
    (void)kill(pool.pid, SIGTERM);
    pool_assert_ends(&pool, 0, 10);
    assert_int_equal(pool_log_count(&pool, "event=pool.worker_died"), 0);
    assert_int_equal(pool_log_count(&pool, "event=commit.unsettled"), 0);
    pool_work_assert_exact(&f, &work);
    checker_assert_holds(&checker, &f, pool_work_now(&work), "");
    assert_said_done(work.users * work.periods, work.orders);
}

static void assert_settled(int64_t committed, int64_t rolled_back)
{
    assert_int_equal(pool_incidents(&f, "commit_unknown", "settled: committed"),
                     committed);
    assert_int_equal(pool_incidents(&f, "commit_unknown", "settled: rolled back"),
                     rolled_back);
    assert_int_equal(pool_counter(&f, "commit_unknown"), committed + rolled_back);
}

/* ---- around COMMIT ---- */

static void commit_never_sent_on_is_settled_as_rolled_back(void **state)
{
    (void)state;
    start_midway();
    for (unsigned i = 1; i <= CUTS; i++) {
        proxy_cut_before(&proxy, PROXY_COMMIT, PROXY_COMMIT_SIZE, 1);
        assert_true(proxy_wait(&proxy, PROXY_CUTS_BEFORE, i, 10));
    }
    finish_exactly();
    assert_settled(0, CUTS);
}

static void commit_ack_lost_is_settled_as_committed(void **state)
{
    (void)state;
    start_midway();
    for (unsigned i = 1; i <= CUTS; i++) {
        proxy_cut_after(&proxy, PROXY_COMMIT, PROXY_COMMIT_SIZE, 1);
        assert_true(proxy_wait(&proxy, PROXY_CUTS_AFTER, i, 10));
    }
    finish_exactly();
    assert_settled(CUTS, 0);
}

static void commit_ack_lost_by_all_workers_at_once_is_settled(void **state)
{
    (void)state;
    start_midway();
    proxy_cut_before(&proxy, PROXY_COMMIT, PROXY_COMMIT_SIZE, 4);
    assert_true(proxy_wait(&proxy, PROXY_CUTS_BEFORE, 4, 10));
    proxy_cut_after(&proxy, PROXY_COMMIT, PROXY_COMMIT_SIZE, 4);
    assert_true(proxy_wait(&proxy, PROXY_CUTS_AFTER, 4, 10));
    finish_exactly();
    assert_settled(4, 4);
}

/* COMMIT of a batch with subscription 1 takes its time: less than a statement may. */
static const char slow_commit[] =
    "CREATE FUNCTION public.slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM"
    " pg_sleep(0.6); RETURN NULL; END $$; CREATE CONSTRAINT TRIGGER slow AFTER INSERT"
    " ON ledgerlock.charges DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN"
    " (NEW.subscription_id = 1) EXECUTE FUNCTION public.slow()";

#define COMMITTING                                                                     \
    "SELECT count(*) FROM pg_stat_activity AS c WHERE c.datname = current_database()"  \
    " AND c.query = 'COMMIT' AND c.wait_event = 'PgSleep'"
#define ASKED_MEANWHILE                                                                \
    COMMITTING " AND EXISTS (SELECT FROM pg_stat_activity AS a WHERE a.datname ="      \
               " c.datname AND a.query LIKE '%pg_xact_status%' AND a.pid <> c.pid AND" \
               " a.pid <> pg_backend_pid())"

static void wait_until(const char *url, const char *sql)
{
    for (int i = 0; fixture_query_int8(url, sql) == 0; i++) {
        if (i > 1000)
            fail_msg("never true: %s", sql);
        fixture_pause_ms(5);
    }
}

/* Who asks while it still runs sees no effects yet, and must not believe it. */
static void commit_still_running_is_waited_for(void **state)
{
    char url[FIXTURE_URL];

    (void)state;
    fixture_url_as(&f, "postgres", url, sizeof url);
    fixture_exec(url, slow_commit);
    start("1");
    wait_until(url, COMMITTING);
    proxy_cut_all(&proxy);
    wait_until(url, ASKED_MEANWHILE);
    finish_exactly();
    assert_settled(1, 0);
}

/* The pool is told to stop while an outcome is unknown: it finds out before it ends. */
static void commit_ack_lost_at_the_end_is_settled_before_exit(void **state)
{
    (void)state;
    start_midway();
    proxy_cut_after(&proxy, PROXY_COMMIT, PROXY_COMMIT_SIZE, 1);
    assert_true(proxy_wait(&proxy, PROXY_CUTS_AFTER, 1, 10));
    (void)kill(pool.pid, SIGTERM);
    pool_assert_ends(&pool, 0, 10);
    assert_settled(1, 0);
    assert_true(pool_work_done(&f) < pool_work_all(&work));
    assert_int_equal(pool_counter(&f, "charged") + pool_counter(&f, "fulfilled") +
                         pool_counter(&f, "rejected"),
                     pool_work_done(&f));
    assert_int_equal(pool_lock_keys(&f), 0);
}

/* ---- in the middle of a transaction ---- */

/* A Bind message of the statement: its name behind an empty portal name. */
static const char apply[] = "\0billing_apply_charges";
static const char begin[] = "BEGIN ISOLATION";

static void connection_lost_around_apply_is_rolled_back_and_redone(void **state)
{
    (void)state;
    start_midway();
    for (unsigned i = 1; i <= CUTS; i++) {
        proxy_cut_before(&proxy, apply, sizeof apply, 1);
        assert_true(proxy_wait(&proxy, PROXY_CUTS_BEFORE, i, 10));
        proxy_cut_after(&proxy, apply, sizeof apply, 1);
        assert_true(proxy_wait(&proxy, PROXY_CUTS_AFTER, i, 10));
    }
    finish_exactly();
    assert_settled(0, 0);
}

static void answers_slower_than_the_lease_are_lost_before_commit(void **state)
{
    (void)state;
    proxy_swallow_at(&proxy, begin, strlen(begin));
    start("1");
    assert_true(proxy_wait(&proxy, PROXY_SWALLOWED, 1, 10));
    proxy_delay(&proxy, 550); /* three answers outlast the lease of 1.5 s */
    proxy_swallow(&proxy, false);
    pool_log_wait(&pool, "event=lock.lost", 10);
    assert_true(proxy_count(&proxy, PROXY_DELAYED) >= 3);
    assert_int_equal(pool_work_done(&f), 0);
    proxy_pass(&proxy);
    finish_exactly();
    assert_true(pool_incidents(&f, "lost", "rolled back, the rows stay due") > 0);
    assert_true(pool_counter(&f, "lost") > 0);
}

#define UNKNOWN_TEST(name)                                                             \
    cmocka_unit_test_setup_teardown(name, open_world, close_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNKNOWN_TEST(commit_never_sent_on_is_settled_as_rolled_back),
        UNKNOWN_TEST(commit_ack_lost_is_settled_as_committed),
        UNKNOWN_TEST(commit_ack_lost_by_all_workers_at_once_is_settled),
        UNKNOWN_TEST(commit_still_running_is_waited_for),
        UNKNOWN_TEST(commit_ack_lost_at_the_end_is_settled_before_exit),
        UNKNOWN_TEST(connection_lost_around_apply_is_rolled_back_and_redone),
        UNKNOWN_TEST(answers_slower_than_the_lease_are_lost_before_commit),
    };

    fixture_need_servers();
    points_program();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
