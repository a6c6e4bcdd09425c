/* quiet: a pool in a server where nobody else writes looks at its tables only when
 * something may be due there, and misses nothing. */
#include "tests/lib/idle_world.h"
#include "tests/lib/private_pg.h"

enum { POLL_MS = 400, ROWS = 5 };

static struct private_pg postgres; /* what others write there would be a sign too */
static PGconn *other;

static int open_quiet(void **state)
{
    int code = open_world(state);

    other = PQconnectdb(owner);
    assert_int_equal(PQstatus(other), CONNECTION_OK);
    return code;
}

static int close_quiet(void **state)
{
    PQfinish(other);
    return close_world(state);
}

/* Due so long after now. */
static void put_row(PGconn *conn, int id, const char *interval)
{
    char sql[400];
    PGresult *res;

    (void)snprintf(sql, sizeof sql,
                   "INSERT INTO ledgerlock.subscriptions (subscription_id, user_id, "
                   "plan, amount_minor, currency, anchor_at, unit, next_due_at) SELECT "
                   "%d, 1, 'p', 100, 'USD', at, 'month', at FROM (SELECT now() + "
                   "interval '%s' AS at) AS x",
                   id, interval);
    res = PQexec(conn, sql);
    if (PQresultStatus(res) != PGRES_COMMAND_OK)
        fail_msg("%s", PQerrorMessage(conn));
    PQclear(res);
}

static int64_t await_charge(int id, int64_t limit_ms)
{
    char sql[100];

    (void)snprintf(sql, sizeof sql,
                   "SELECT count(*) FROM ledgerlock.charges WHERE subscription_id = %d",
                   id);
    return await(sql, limit_ms);
}

/* How often the heads of all strips were read, as far as the server knows. */
static int64_t looks(void)
{
    return ask("SELECT idx_scan / 1024 FROM pg_stat_user_indexes WHERE indexrelname = "
               "'subscriptions_due'");
}

/* ---- what it spares ---- */

/* 30 looks in six seconds, if each were one at the table; two for each time that the
 * workers report are one too many. */
static void pool_in_a_quiet_database_seldom_looks_at_its_tables(void **state)
{
    int64_t before, n;

    (void)state;
    start_pool(&pool, "200", "off");
    fixture_pause_ms(3000);
    before = looks();
    fixture_pause_ms(6000);
    n = looks() - before;
    print_message("looked %" PRId64 " times in 6 s\n", n);
    assert_in_range(n, 0, 10);
    stop_pool();
}

static void pool_in_a_database_where_others_write_always_looks(void **state)
{
    int64_t before, n;

    (void)state;
    start_pool(&pool, "200", "off");
    fixture_pause_ms(3000);
    before = looks();
    for (int i = 0; i < 60; i++) {
        (void)ask("SELECT pg_current_xact_id()::text::bigint");
        fixture_pause_ms(100);
    }
    n = looks() - before;
    print_message("looked %" PRId64 " times in 6 s\n", n);
    assert_in_range(n, 12, 40);
    stop_pool();
}

/* ---- what it must not miss ---- */

/* Most within one and a half polls, and none much later: the machine is shared. */
static void assert_polled(int64_t *waits)
{
    qsort(waits, ROWS, sizeof waits[0], compare);
    print_message("waited %" PRId64 " to %" PRId64 " ms\n", waits[0], waits[ROWS - 1]);
    assert_in_range(waits[ROWS / 2], 0, POLL_MS * 3 / 2);
    assert_in_range(waits[ROWS - 1], 0, POLL_MS * 3);
}

static void row_written_into_a_quiet_database_waits_for_a_poll(void **state)
{
    int64_t waits[ROWS];

    (void)state;
    start_pool(&pool, "400", "off");
    for (int id = 1; id <= ROWS; id++) {
        fixture_pause_ms(3 * POLL_MS + 70 * id);
        put_row(door, id, "0 s");
        waits[id - 1] = await_charge(id, 8000);
    }
    assert_polled(waits);
    stop_pool();
}

/* One that is invisible at a look must be seen at the next, whatever ended before it.
 */
static void row_of_a_transaction_left_open_waits_for_a_poll_after_it(void **state)
{
    int64_t waits[ROWS];

    (void)state;
    start_pool(&pool, "400", "off");
    for (int id = 1; id <= ROWS; id++) {
        PQclear(PQexec(other, "BEGIN"));
        put_row(other, id, "0 s");
        (void)ask("SELECT pg_current_xact_id()::text::bigint");
        fixture_pause_ms(3 * POLL_MS + 70 * id);
        PQclear(PQexec(other, "COMMIT"));
        waits[id - 1] = await_charge(id, 8000);
    }
    assert_polled(waits);
    stop_pool();
}

/* Two seconds and a half before a poll; the mark of a quiet database spares the looks
 * of those polls, and must not spare the waking in between. */
static void
row_that_becomes_due_in_a_quiet_database_is_charged_at_its_time(void **state)
{
    (void)state;
    start_pool(&pool, "4000", "off"); /* polls at 4, 8 and 12 seconds */
    fixture_pause_ms(1000);
    put_row(door, 1, "4500 ms");
    put_row(door, 2, "8500 ms");
    (void)await("SELECT count(*) = 2 FROM ledgerlock.charges", 12000);
    assert_in_range(ask("SELECT (extract(epoch FROM max(charged_at - period_start)) * "
                        "1000)::bigint FROM ledgerlock.charges"),
                    0, 2000);
    stop_pool();
}

static int open_server(void **state)
{
    (void)state;
    private_pg_open(&postgres);
    return 0;
}

static int close_server(void **state)
{
    (void)state;
    private_pg_close(&postgres);
    return 0;
}

#define QUIET(name) cmocka_unit_test_setup_teardown(name, open_quiet, close_quiet)

int main(void)
{
    const struct CMUnitTest tests[] = {
        QUIET(pool_in_a_quiet_database_seldom_looks_at_its_tables),
        QUIET(pool_in_a_database_where_others_write_always_looks),
        QUIET(row_written_into_a_quiet_database_waits_for_a_poll),
        QUIET(row_of_a_transaction_left_open_waits_for_a_poll_after_it),
        QUIET(row_that_becomes_due_in_a_quiet_database_is_charged_at_its_time),
    };

    fixture_need_servers();
    return cmocka_run_group_tests(tests, open_server, close_server);
}
