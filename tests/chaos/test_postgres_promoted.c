/* PostgreSQL dies and a standby that had not got the end of it takes over: what was
 * lost is done again, and on the new server everything is there once. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/chaos_world.h"
#include "tests/lib/private_pg.h"

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
    for (int i = 0; fixture_query_int8(pg->url, sql) != 1; i++) {
        if (i > 500)
            fail_msg("never true: %s", sql);
        fixture_pause_ms(20);
    }
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
    checker_lost(&chaos.checker);
    fixture_exec(standby.url, "SELECT pg_promote()");
    wait_until(&standby, "SELECT (NOT pg_is_in_recovery())::int");
    lead_to(&standby);
}

static void standby_promoted_without_the_tail_it_is_done_again(void **state)
{
    int64_t before, after;

    (void)state;
    chaos_start_midway();
    cut_off_the_standby();
    before = pool_work_done(&chaos.f);
    pool_work_wait(&chaos.f, before + 300, 20);
    before = pool_work_done(&chaos.f);
    fail_over();
    after = pool_work_done(&chaos.f);
    print_message("%" PRId64 " of %" PRId64 " were lost with the server\n",
                  before - after, before);
    assert_true(before - after >= 200);
    chaos_assert_midway();
    chaos_recovers(60);
    assert_int_equal(pool_log_count(&chaos.pool, "event=pool.worker_died"), 0);
    chaos_end();
}

static int open_servers(void **state)
{
    char url[FIXTURE_URL];

    (void)state;
    private_pg_open(&primary);
    private_pg_follow(&standby, &primary);
    fixture_temporary(front, sizeof front, "front");
    assert_non_null(mkdtemp(front));
    (void)snprintf(url, sizeof url, "postgresql:///postgres?host=%s&user=postgres",
                   front);
    (void)setenv("LEDGERLOCK_TEST_PG", url, 1);
    lead_to(&primary);
    return 0;
}

static int close_servers(void **state)
{
    char link[96];

    (void)state;
    private_pg_close(&standby);
    private_pg_close(&primary);
    (void)snprintf(link, sizeof link, "%s/.s.PGSQL.5432", front);
    (void)unlink(link);
    (void)rmdir(front);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            standby_promoted_without_the_tail_it_is_done_again, chaos_open,
            chaos_close),
    };

    fixture_need_servers();
    return cmocka_run_group_tests(tests, open_servers, close_servers);
}
