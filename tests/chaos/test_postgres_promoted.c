/* PostgreSQL dies and a standby that had not got the end of it takes over: what was
 * lost is done again, and on the new server everything is there once. */
#include "tests/lib/fault.h"
#include "tests/lib/private_pg.h"
#include "tests/lib/steps.h"

static const struct world_plan world_plan = {FAULT_PLAN, .load = &fault_usual};

static struct private_pg primary, standby;
static char front[64]; /* a folder with a link to the socket of the one that counts */

/* New connections, ours too, go to this server from now on. */
static void lead_to(const struct private_pg *pg)
{
    char socket[128], link[96];

    (void)snprintf(socket, sizeof socket, "%s/.s.PGSQL.5432", pg->dir);
    (void)snprintf(link, sizeof link, "%s/.s.PGSQL.5432", front);
    (void)unlink(link);
    assert_int_equal(symlink(socket, link), 0);
}

static void wait_until(const struct private_pg *pg, const char *sql)
{
    FIXTURE_AWAIT(fixture_query_int8(pg->url, sql) == 1, "never true: %s", sql);
}

/* The standby has what the primary has, and gets nothing from now on. */
static void cut_off_the_standby(void)
{
    wait_until(&standby, "SELECT count(*) FROM pg_stat_wal_receiver WHERE status ="
                         " 'streaming'");
    fixture_exec(standby.url, "ALTER SYSTEM SET primary_conninfo = ''");
    fixture_exec(standby.url, "SELECT pg_reload_conf()");
    wait_until(&standby, "SELECT (count(*) = 0)::int FROM pg_stat_wal_receiver");
}

/* With its sessions: they would outlive it, and be told to commit, for as long as
 * somebody has always something for them to do. */
static void kill_the_primary(void)
{
    pid_t sessions[POOL_CHILDREN];
    size_t n = pool_children(primary.pid, sessions);

    private_pg_kill(&primary);
    for (size_t i = 0; i < n; i++) {
        (void)kill(sessions[i], SIGKILL);
        while (pool_is_alive(sessions[i]))
            fixture_pause_ms(1);
    }
}

static void fail_over(void)
{
    kill_the_primary();
    checker_mark("lost", 0, 0);
    fixture_exec(standby.url, "SELECT pg_promote()");
    wait_until(&standby, "SELECT (NOT pg_is_in_recovery())::int");
    lead_to(&standby);
}

static void open_servers(void)
{
    char url[FIXTURE_URL];

    private_pg_open(&primary);
    private_pg_follow(&standby, &primary);
    fixture_temporary(front, sizeof front, "front");
    assert_non_null(mkdtemp(front));
    (void)snprintf(url, sizeof url, "postgresql:///postgres?host=%s&user=postgres",
                   front);
    (void)setenv("LL_TEST_PG", url, 1);
    lead_to(&primary);
}

static void close_servers(void)
{
    char link[96];

    private_pg_close(&standby);
    private_pg_close(&primary);
    (void)snprintf(link, sizeof link, "%s/.s.PGSQL.5432", front);
    (void)unlink(link);
    (void)rmdir(front);
}

/* Each case uses up its servers. */
static void open_all(void)
{
    open_servers();
    world_open();
}

static void close_all(void)
{
    world_close();
    close_servers();
}

GROUP(.plan = &world_plan, .open = open_all, .close = close_all);

static void promote_without_the_tail(void)
{
    int64_t before, after;

    fault_start_midway();
    cut_off_the_standby();
    fault_work_wait(300);
    before = pool_work_done();
    fail_over();
    after = pool_work_done();
    print_message("%" PRId64 " of %" PRId64 " were lost with the server\n",
                  before - after, before);
    assert_true(before - after >= 200);
    fault_finish();
    pool_logged(0, "event=pool.worker_died");
}

/* Guarantee: A standby without the last commits takes over: they are done again,
 * once. */
CASE(standby_promoted_without_the_tail_it_is_done_again)
{
    promote_without_the_tail();
}

/* Guarantee: A standby without the last commits takes over: the program as it is
 * shipped does them again, once. */
CASE(standby_promoted_and_the_shipped_program_does_it_again, .when = fault_is_full)
{
    fault_as_shipped();
    promote_without_the_tail();
}
