/* A second session gets in the way: it holds a table longer than a worker waits, closes
 * a circle of locks, makes statements slow; and transactions that cannot be serialized.
 * Each ends one transaction and nothing else. */
#include <libpq-fe.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/chaos_world.h"

enum { TIMES = 20 };

static PGconn *rival;

static void run(const char *sql)
{
    PGresult *res = PQexec(rival, sql);

    if (PQresultStatus(res) != PGRES_COMMAND_OK &&
        PQresultStatus(res) != PGRES_TUPLES_OK)
        fail_msg("%s: %s", sql, PQresultErrorMessage(res));
    PQclear(res);
}

static void wait_for(const char *sql)
{
    for (int i = 0; chaos_ask(sql) == 0; i++) {
        if (i > 500)
            fail_msg("never true: %s", sql);
        fixture_pause_ms(10);
    }
}

static int open_beside_rival(void **state)
{
    char url[FIXTURE_URL];

    (void)chaos_open(state);
    fixture_url_as(&chaos.f, "postgres", url, sizeof url);
    rival = PQconnectdb(url);
    return PQstatus(rival) == CONNECTION_OK ? 0 : -1;
}

static int close_both(void **state)
{
    PQfinish(rival);
    return chaos_close(state);
}

/* It met a transaction that failed so, said so, and no worker ended. */
static void assert_collided(const char *words)
{
    pool_log_wait(&chaos.pool, words, 5);
    chaos_assert_midway();
    chaos_recovers(60);
    assert_int_equal(pool_log_count(&chaos.pool, "event=pool.worker_died"), 0);
    chaos_end();
    assert_true(pool_counter(&chaos.f, "conflicts") > 0);
}

static void collision_lock_timeout_is_redone(void **state)
{
    (void)state;
    chaos_start_midway();
    run("BEGIN; LOCK TABLE ledgerlock.transfers IN ACCESS EXCLUSIVE MODE");
    wait_for("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
             " AND wait_event_type = 'Lock'");
    fixture_pause_ms(CHAOS_LEASE_MS);
    run("ROLLBACK");
    assert_collided("55P03");
}

/* The rival waits for a worker's row, the worker for the rival's table. */
static void collision_deadlock_is_redone(void **state)
{
    PGresult *res;

    (void)state;
    fixture_env("LEDGERLOCK_LOCKS_LEASE_MS", "8000"); /* or it waits too short */
    chaos_start_midway();
    run("SET deadlock_timeout = '60s'");
    run("BEGIN; LOCK TABLE ledgerlock.transfers IN SHARE MODE");
    wait_for("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
             " AND wait_event_type = 'Lock'");
    assert_int_equal(
        PQsendQuery(rival, "SELECT count(*) FROM (SELECT 1 FROM ledgerlock.users FOR"
                           " UPDATE) AS u"),
        1);
    wait_for("SELECT deadlocks FROM pg_stat_database WHERE datname ="
             " current_database()");
    while ((res = PQgetResult(rival)) != NULL)
        PQclear(res);
    run("ROLLBACK");
    assert_collided("40P01");
}

/* The first TIMES charges meet this; a sequence counts also what is rolled back. */
static void plant(const char *what)
{
    char sql[1024];

    (void)snprintf(
        sql, sizeof sql,
        "CREATE SEQUENCE public.planted; CREATE FUNCTION public.plant() RETURNS trigger"
        " LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN IF nextval('public.planted') <="
        " %d THEN %s; END IF; RETURN NEW; END $$; CREATE TRIGGER plant BEFORE INSERT ON"
        " ledgerlock.charges FOR EACH ROW EXECUTE FUNCTION public.plant()",
        TIMES, what);
    run(sql);
}

static void collision_statement_timeout_is_redone(void **state)
{
    (void)state;
    plant("PERFORM pg_sleep(1.2)"); /* half a lease is the limit */
    chaos_start("4");
    assert_collided("57014");
    assert_true(chaos_ask("SELECT last_value FROM public.planted") > TIMES);
}

static void collision_serialization_failure_is_redone(void **state)
{
    (void)state;
    plant("RAISE EXCEPTION 'planted' USING ERRCODE = '40001'");
    chaos_start("4");
    assert_collided("40001");
    assert_true(chaos_ask("SELECT last_value FROM public.planted") > TIMES);
}

#define COLLISION_TEST(name)                                                           \
    cmocka_unit_test_setup_teardown(name, open_beside_rival, close_both)

int main(void)
{
    const struct CMUnitTest tests[] = {
        COLLISION_TEST(collision_lock_timeout_is_redone),
        COLLISION_TEST(collision_deadlock_is_redone),
    };
    const struct CMUnitTest more[] = {
        COLLISION_TEST(collision_statement_timeout_is_redone),
        COLLISION_TEST(collision_serialization_failure_is_redone),
    };

    fixture_need_servers();
    if (chaos_is_full() && cmocka_run_group_tests(more, NULL, NULL) != 0)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
