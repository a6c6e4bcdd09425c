/* pool: a server refuses for a while what it granted before: a login, a right, a table,
 * the schema, the database. The pool waits as for an outage, says so once, goes on by
 * itself, and the totals are exact; the words of the refusal decide nothing. */
#include "tests/lib/fault.h"
#include "tests/lib/private_pg.h"
#include "tests/lib/secrets.h"
#include "tests/lib/steps.h"

#define ROTATED "rotated-for-the-test"

static char hba[128]; /* the server's file, and beside it what it was */

static void shell(const char *fmt, ...) STEPS_TAKE(1);

static void shell(const char *fmt, ...)
{
    char command[640];
    va_list ap;

    va_start(ap, fmt);
    assert_in_range(vsnprintf(command, sizeof command, fmt, ap), 1, sizeof command - 1);
    va_end(ap);
    assert_int_equal(system(command), 0);
}

static void restore_hba(void)
{
    if (hba[0] == '\0')
        return;
    shell("cat '%s.was' >'%s'", hba, hba);
    fixture_exec(private_pg.url, "SELECT pg_reload_conf()");
    hba[0] = '\0';
}

static const struct load_size size = {
    .users = 120, .subscriptions = 160, .orders = 150, .periods = 12};
static const struct world_plan world_plan = {FAULT_PLAN, .load = &size,
                                             .undo = restore_hba};
GROUP(.plan = &world_plan,
      .start = private_pg_begin,
      .stop = private_pg_end,
      GROUP_OF_WORLD);

/* ---- refusals ---- */

static void end_sessions(const char *of)
{
    char sql[200];

    (void)snprintf(sql, sizeof sql,
                   "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
                   " WHERE pid <> pg_backend_pid() AND %s",
                   of);
    (void)fixture_query_int8(private_pg.url, sql);
}

/* The file of the password follows later, as with every rotation. */
static void rotate_password(bool on)
{
    if (!on) {
        shell("printf %%s '%s' >'%s'", ROTATED, secrets_of_postgres());
        return;
    }
    fixture_query_text(private_pg.url, "SHOW hba_file", hba, sizeof hba);
    shell("cp '%s' '%s.was'", hba, hba);
    shell("{ echo local all ledgerlock_worker scram-sha-256; cat '%s.was'; } >'%s'",
          hba, hba);
    fixture_exec(private_pg.url, "ALTER ROLE ledgerlock_worker PASSWORD '" ROTATED "'");
    fixture_exec(private_pg.url, "SELECT pg_reload_conf()");
    while (pool_log_count(&world.pool, "event=pool.postgres_down") == 0) {
        end_sessions("usename = 'ledgerlock_worker'");
        fixture_pause_ms(20);
    }
}

static void on_server(const char *fmt, ...) STEPS_TAKE(1);

static void on_server(const char *fmt, ...)
{
    char sql[200];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(sql, sizeof sql, fmt, ap);
    va_end(ap);
    fixture_exec(private_pg.url, sql);
}

/* A database with sessions cannot be renamed. */
static void rename_database(bool on)
{
    if (!on) {
        on_server("ALTER DATABASE away RENAME TO %s", world.f.database);
        return;
    }
    on_server("ALTER DATABASE %s ALLOW_CONNECTIONS off", world.f.database);
    end_sessions("backend_type = 'client backend'");
    FIXTURE_AWAIT(fixture_query_int8(private_pg.url,
                                     "SELECT count(*) FROM pg_stat_activity WHERE"
                                     " backend_type = 'client backend'") == 1,
                  "%s", "sessions stay");
    on_server("ALTER DATABASE %s RENAME TO away", world.f.database);
    on_server("ALTER DATABASE away ALLOW_CONNECTIONS on");
}

static void take_rights(bool on)
{
    world_do(on ? "REVOKE SELECT ON subscriptions, orders FROM ledgerlock_worker"
                : "GRANT SELECT ON subscriptions, orders TO ledgerlock_worker");
}

static void take_functions(bool on)
{
    super_do(
        "DO $$ DECLARE f regprocedure; BEGIN FOR f IN SELECT oid FROM pg_proc WHERE"
        " proname ~ '^apply_' LOOP EXECUTE format('%s ON FUNCTION %%s %s"
        " ledgerlock_worker', f); END LOOP; END $$",
        on ? "REVOKE EXECUTE" : "GRANT EXECUTE", on ? "FROM" : "TO");
}

static void rename_table(bool on)
{
    super_do(on ? "ALTER TABLE ledgerlock.charges RENAME TO away"
                : "ALTER TABLE ledgerlock.away RENAME TO charges");
}

static void rename_schema(bool on)
{
    super_do(on ? "ALTER SCHEMA ledgerlock RENAME TO away"
                : "ALTER SCHEMA away RENAME TO ledgerlock");
}

static void rotate_redis(bool on)
{
    char reply[64];

    if (!on) {
        shell("printf %%s '%s' >'%s'", ROTATED, secrets_of_redis());
        return;
    }
    fault_redis_ok("CONFIG SET requirepass " ROTATED);
    pool_redis_password(ROTATED);
    fault_redis(reply, sizeof reply, "CLIENT KILL TYPE normal SKIPME yes");
}

#define LOGIN .down = "event=pool.postgres_down", .up = "event=pool.postgres_up"
#define REFUSED                                                                        \
    .down = "event=pool.postgres_refuses", .up = "event=pool.postgres_serves"

static const struct fault refusals[] = {
    {"the_password", rotate_password, LOGIN, .words = "password authentication failed"},
    {"the_database", rename_database, LOGIN, .words = "does not exist"},
    {"to_read", take_rights, REFUSED, .words = "permission denied"},
    {"to_write", take_functions, REFUSED, .words = "permission denied"},
    {"a_table", rename_table, REFUSED, .words = "does not exist"},
    {"the_schema", rename_schema, REFUSED, .words = "does not exist"},
    {"the_password_of_redis", rotate_redis, .down = "event=pool.redis_down",
     .up = "event=pool.redis_up"},
};

/* Guarantee: PostgreSQL refuses for a while the login, a right, a table, the schema or
 * the database, or Redis its password: the pool waits, says so once, reads the password
 * file at each try, and goes on by itself. */
CASE_ROWS(pool_waits_while_it_is_refused, refusals, .every = 2)
{
    world.has_no_clients = true;
    world.in_parts = strcmp(row->down, "event=pool.postgres_refuses") == 0;
    fixture_env("LEDGERLOCK_LOG_LEVEL", "debug"); /* the words of each try */
    fault_happens(row);
    pool_logged(1, row->down);
    pool_logged(0, "event=pool.giving_up");
}

/* Guarantee: A worker that is started again while PostgreSQL refuses waits, as the pool
 * had its first success before. */
CASE(worker_that_is_started_while_the_pool_is_refused_waits)
{
    world.has_no_clients = true;
    world.in_parts = true;
    fault_start_midway();
    take_rights(true);
    pool_log_wait(&world.pool, "event=pool.postgres_refuses");
    assert_true(fault_kill(pool_child(world.pool.pid, "billing:0"), SIGKILL));
    pool_log_wait(&world.pool, "event=pool.worker_died");
    FIXTURE_AWAIT(pool_child(world.pool.pid, "billing:0") != 0, "%s", "no successor");
    fault_assert_still();
    take_rights(false);
    fault_recovers();
    pool_log_wait(&world.pool, "event=pool.postgres_serves");
    fault_end();
}
