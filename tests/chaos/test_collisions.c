/* A second session gets in the way: it holds a table longer than a worker waits, closes
 * a circle of locks, makes statements slow; and transactions that cannot be serialized.
 * Each ends one transaction and nothing else. */
#include <libpq-fe.h>

#include "tests/lib/fault.h"
#include "tests/lib/steps.h"

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

const struct world_plan world_plan = {FAULT_PLAN, .load = &fault_usual};

static void open_beside_rival(void)
{
    char url[FIXTURE_URL];

    world_open();
    fixture_env("LEDGERLOCK_LOG_LEVEL", "debug"); /* each failure is told there */
    fixture_url_as(&world.f, "postgres", url, sizeof url);
    rival = PQconnectdb(url);
    assert_int_equal(PQstatus(rival) == CONNECTION_OK ? 0 : -1, 0);
}

static void close_both(void)
{
    PQfinish(rival);
    world_close();
}

GROUP(.open = open_beside_rival, .close = close_both);

/* It met a transaction that failed so, said so, and no worker ended. */
static void assert_collided(const char *words)
{
    pool_log_wait(&world.pool, words);
    fault_assert_midway();
    fault_recovers();
    pool_logged(0, "event=pool.worker_died");
    fault_end();
    assert_true(pool_counter(&world.f, "conflicts") > 0);
}

/* Guarantee: A lock timeout ends one transaction and nothing else; its rows are
 * worked once. */
CASE(collision_lock_timeout_is_redone)
{
    fault_start_midway();
    run("BEGIN; LOCK TABLE ledgerlock.transfers IN ACCESS EXCLUSIVE MODE");
    world_wait(world_blocked);
    fixture_pause_ms(FAULT_LEASE_MS);
    run("ROLLBACK");
    assert_collided("55P03");
}

/* The rival waits for a worker's row, the worker for the rival's table. */
/* Guarantee: A deadlock with another session ends one transaction and nothing else;
 * its rows are worked once. */
CASE(collision_deadlock_is_redone)
{
    PGresult *res;

    fault_as_shipped();
    fixture_env("LEDGERLOCK_LOCKS_LEASE_MS", "8000"); /* or it waits too short */
    fault_start_midway();
    run("SET deadlock_timeout = '60s'");
    run("BEGIN; LOCK TABLE ledgerlock.transfers IN SHARE MODE");
    world_wait(world_blocked);
    assert_int_equal(
        PQsendQuery(rival, "SELECT count(*) FROM (SELECT 1 FROM ledgerlock.users FOR"
                           " UPDATE) AS u"),
        1);
    world_wait("SELECT deadlocks FROM pg_stat_database WHERE datname ="
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

static const struct {
    const char *name, *does, *state;
} planted[] = {
    /* half a lease is the limit of a statement */
    {"a_statement_timeout", "PERFORM pg_sleep(1.2)", "57014"},
    {"a_serialization_failure", "RAISE EXCEPTION 'planted' USING ERRCODE = '40001'",
     "40001"},
};

/* Guarantee: A statement timeout or a serialization failure ends one transaction and
 * nothing else; its rows are worked once. */
CASE_ROWS(rows_are_worked_once_after, planted, .when = fault_is_full)
{
    plant(row->does);
    fault_start("4");
    assert_collided(row->state);
    assert_true(fault_ask("SELECT last_value FROM public.planted") > TIMES);
}
