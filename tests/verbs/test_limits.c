/* limits: those of the database or the role are meant for others, and end no statement
 * and no session of the program, the first statement of a connection included. */
#include "tests/lib/session.h"
#include "tests/lib/steps.h"

static const struct pool_work small = {
    .users = 20, .periods = 2, .orders = 10, .units = 10};

WORLD(.role = "ledgerlock_owner", .poll_ms = 1000, .work = &small);

static void empty(void)
{
    fixture_open(&world.f);
}

/* The least that the server takes: what lasts longer is any statement. */
static const struct limit {
    const char *name, *value;
} limits[] = {
    {"statement_timeout", "1ms"},
    {"lock_timeout", "1ms"},
    {"idle_in_transaction_session_timeout", "1ms"},
};

static void limit(const struct limit *l)
{
    super_do("ALTER DATABASE %s SET %s = '%s'", world.f.database, l->name, l->value);
}

/* Guarantee: A limit of the database (statement_timeout, lock_timeout,
 * idle_in_transaction_session_timeout, idle_session_timeout) ends none of the verbs and
 * no worker. */
CASE_ROWS(migrate_is_not_ended_by, limits, .open = empty)
{
    limit(row);
    world_runs(0, "migrate");
    world_runs(0, "migrate");
}

CASE_ROWS(verbs_are_not_ended_by, limits)
{
    char stock[64];

    limit(row);
    fixture_file(stock, sizeof stock, "sku,quantity,unit_price\nNEW,1,1.00\n", 0600);
    world_runs(0, "import --stock %s", stock);
    (void)unlink(stock);
    world_runs(0, "run --once -w 2 --now %s", pool_work_now());
    world_audit(pool_work_now(), NULL);
    world_runs(0, "status");
    world_runs(0, "report");
    world_says(6, "LL-7004", "close-month 2024-01");
}

/* Behind a pooler each transaction begins with the limits. */
CASE_ROWS(transactions_are_not_ended_by, limits)
{
    fixture_env("LEDGERLOCK_POSTGRES_POOLING", "transaction");
    limit(row);
    world_runs(0, "run --once -w 2 --now %s", pool_work_now());
    world_audit(pool_work_now(), NULL);
}

/* Longer than the limit of the database, and as long as the other session likes. */
CASE(import_waits_for_a_lock_beyond_the_limit_of_the_database)
{
    struct fixture_child import = {0};
    PGconn *holder = session_open(world.owner);
    char stock[64];

    limit(&limits[1]);
    session_do(holder, "SELECT pg_advisory_lock(hashtext('ledgerlock load'))");
    fixture_file(stock, sizeof stock, "sku,quantity,unit_price\nNEW,1,1.00\n", 0600);
    starts(&world.f, &import, "import --stock %s", stock);
    world_wait("SELECT count(*) > 0 FROM pg_locks WHERE locktype = 'advisory' AND NOT"
               " granted");
    fixture_pause_ms(100);
    PQfinish(holder);
    assert_int_equal(fixture_wait(&import, 60, &said), 0);
    (void)unlink(stock);
}

/* A worker that finds nothing due asks after a second again. */
CASE(idle_worker_is_not_ended_by_the_limit_of_the_database)
{
    const struct limit idle = {"idle_session_timeout", "300ms"};

    limit(&idle);
    pool_start("run -w 2 --jobs billing --now %s", pool_work_now());
    pool_work_wait((int64_t)small.users * small.periods);
    pool_assert_stands_still(2500);
    pool_stop();
    pool_logged(0, "event=pool.postgres_down");
}
