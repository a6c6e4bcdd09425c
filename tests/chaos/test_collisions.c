/* A second session gets in the way: it holds a table longer than a worker waits, closes
 * a circle of locks, makes statements slow; and transactions that cannot be serialized.
 * Each ends one transaction and nothing else. */
#include "tests/lib/fault.h"
#include "tests/lib/session.h"
#include "tests/lib/steps.h"

enum { TIMES = 20 };

static PGconn *rival;

static const struct world_plan world_plan = {FAULT_PLAN, .load = &fault_usual};

static void open_beside_rival(void)
{
    world_open();
    fixture_env("LEDGERLOCK_LOG_LEVEL", "debug"); /* each failure is told there */
    rival = super_open();
}

static void close_both(void)
{
    PQfinish(rival);
    world_close();
}

GROUP(.plan = &world_plan, .open = open_beside_rival, .close = close_both);

/* The pool met a transaction that failed so, said so, and no worker ended. */
static void assert_collided(const char *words)
{
    pool_log_wait(&world.pool, words);
    fault_finish();
    pool_logged(0, "event=pool.worker_died");
    assert_true(pool_counter("conflicts") > 0);
}

/* Guarantee: A lock timeout ends one transaction and nothing else; its rows are
 * worked once. */
CASE(collision_lock_timeout_is_redone)
{
    fault_start_midway();
    session_do(rival, "BEGIN; LOCK TABLE ledgerlock.batches IN SHARE MODE");
    gate_feed();
    world_wait_blocked();
    fixture_pause_ms(FAULT_LEASE_MS);
    session_do(rival, "ROLLBACK");
    assert_collided("55P03");
}

/* A worker that has its users, and waits for a session of the test before it charges
 * them. Its deadlock is looked for once, a second after its wait began, so the circle
 * is closed by its own step: the rival waits for its rows before. */
static const char halt[] =
    "CREATE FUNCTION public.halt() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS"
    " $$ BEGIN PERFORM pg_advisory_xact_lock_shared(1);"
    " PERFORM pg_advisory_xact_lock_shared(2); RETURN NULL; END $$; CREATE TRIGGER halt"
    " BEFORE INSERT ON ledgerlock.charges FOR EACH STATEMENT EXECUTE FUNCTION"
    " public.halt()";

/* For a worker that waits at the trigger. */
static void wait_until_rival_waits(void)
{
    world_wait("SELECT count(*) > 0 FROM pg_locks WHERE NOT granted AND locktype ="
               " 'advisory' AND pid = ANY (pg_blocking_pids(%d))",
               PQbackendPID(rival));
}

/* The rival waits for a worker's row, the worker for the rival's lock; and the worker
 * is the one that finds out. */
/* Guarantee: A deadlock with another session ends one transaction and nothing else;
 * its rows are worked once. */
CASE(collision_deadlock_is_redone)
{
    PGresult *res;
    PGconn *latch;

    fault_as_shipped();
    fixture_env("LEDGERLOCK_LOCKS_LEASE_MS", "120000"); /* or it waits too short */
    world.has_no_clients = true; /* they would find the circle, or be in it */
    super_do("%s", halt);
    fault_start_midway();
    latch = super_open();
    session_do(latch, "SELECT pg_advisory_lock(1)");
    session_do(rival, "SET deadlock_timeout = '600s'");
    session_do(rival, "BEGIN; SELECT pg_advisory_xact_lock(2)");
    gate_open(); /* enough for all workers */
    world_wait("SELECT count(*) > 0 FROM pg_locks WHERE NOT granted AND locktype ="
               " 'advisory' AND objid = 1");
    assert_int_equal(
        PQsendQuery(rival, "SELECT count(*) FROM (SELECT 1 FROM ledgerlock.users FOR"
                           " UPDATE) AS u"),
        1);
    wait_until_rival_waits();
    PQfinish(latch);
    pool_log_wait(&world.pool, "40P01");
    super_do("SELECT pg_cancel_backend(%d)", PQbackendPID(rival));
    while ((res = PQgetResult(rival)) != NULL)
        PQclear(res);
    session_do(rival, "ROLLBACK");
    world.has_no_clients = false;
    assert_collided("40P01");
}

/* The first TIMES charges meet this; a sequence counts also what is rolled back. */
static void plant(const char *what)
{
    super_do(
        "CREATE SEQUENCE public.planted; CREATE FUNCTION public.plant() RETURNS trigger"
        " LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN IF nextval('public.planted') <="
        " %d THEN %s; END IF; RETURN NEW; END $$; CREATE TRIGGER plant AFTER INSERT ON"
        " ledgerlock.charges FOR EACH ROW EXECUTE FUNCTION public.plant()",
        TIMES, what);
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
    assert_true(super_ask("SELECT last_value FROM public.planted") > TIMES);
}
