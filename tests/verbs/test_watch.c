/* status for people: verdict, waits, parked rows, stock and workers; watched in
 * terminals of 80 x 24 and 120 x 50, and in a pipe. */
#include <libpq-fe.h>

#include "tests/lib/forged_rows.h"
#include "tests/lib/steps.h"
#include "tests/lib/terminal.h"

static const struct pool_work small = {
    .users = 20, .periods = 3, .orders = 30, .units = 10};

WORLD(.work = &small);

WORLD_OPEN(open_empty, .work = NULL)

/* Guarantee: `status` says 1 charged twice, 1 oversold and 1 total wrong as soon as one
 * of each is there. */
CASE(status_shows_what_a_failed_guard_leaves, .open = open_empty)
{
    super_do("%s", forged_rows);
    world_says(0, "0 charged twice, 0 oversold, 0 totals wrong", "status");
    super_do(FORGED_BY_HAND FORGED_CHARGE FORGED_UNIT FORGED_WALLET);
    world_says(0, "1 charged twice, 1 oversold, 1 totals wrong", "status");
}

/* Guarantee: `status` shows what the last whole audit of a pool found, and its age. */
CASE(status_shows_the_last_whole_audit)
{
    world_says(0, "No pool has made a whole audit yet", "status");
    world_do("INSERT INTO audits (ended_at, took_ms, invariants, broken) VALUES"
             " (now() - interval '100000 s', 5, 66, '{one_charge_per_period}')");
    world_says(0, "BROKEN, 1 d 3 h ago: one_charge_per_period", "status");
    world_do("SELECT report_audit(5, 66, '[]')");
    world_says(0, "no promise is broken, ", "status");
}

static PGconn *session(const char *name)
{
    char url[FIXTURE_URL + 64];
    PGconn *conn;

    (void)snprintf(url, sizeof url, "%s&application_name=%s", world.f.url, name);
    conn = PQconnectdb(url);
    assert_int_equal(PQstatus(conn), CONNECTION_OK);
    return conn;
}

/* The next whole text on the screen, without what begins it. */
static void next_frame(char *frame, size_t size)
{
    static const char anew[] = "\033[H\033[J";
    const char *begin, *end;

    t.n = 0;
    wait_for(anew, 0);
    wait_for(anew, (size_t)(strstr(t.said, anew) - t.said) + 1);
    begin = strstr(t.said, anew) + sizeof anew - 1;
    end = strstr(begin, anew);
    (void)snprintf(frame, size, "%.*s", (int)(end - begin), begin);
}

/* Asserts that a frame fits into so many lines, of which one stays free, and columns.
 */
static void assert_fits(const char *frame, size_t lines, size_t columns)
{
    size_t n = 0;

    for (const char *p = frame; *p != '\0'; n++) {
        size_t width = strcspn(p, "\r\n");

        if (width > columns)
            fail_msg("%zu columns: %.*s", width, (int)width, p);
        p += width;
        p += strspn(p, "\r\n");
    }
    if (n >= lines)
        fail_msg("%zu lines in %zu: %s", n, lines, frame);
}

static void stop_watching(void)
{
    assert_int_equal(kill(t.pid, SIGTERM), 0);
    assert_int_equal(end_on_terminal(), 128 + SIGTERM);
}

/* Guarantee: `status` shows the sessions that wait and their holders, parked rows with
 * their reason, and what is left of a SKU as a bar, in a small window and in a large
 * one, of which no line is wider and no text longer. */
CASE(status_shows_who_waits_parked_rows_and_stock_bars)
{
    static const unsigned short sizes[][2] = {{24, 80}, {50, 120}};
    static const char *const shown[] = {"the-waiter", "the-holder", "1 a broken wallet",
                                        "half",       "[#",         "INCIDENT"};
    static const char take[] = "SELECT pg_advisory_lock(4711)";
    PGconn *holder, *waiter;
    char frame[1 << 14];

    world_sku(900, "half", 10, 1);
    (void)world_order(1, "half", "[{\"sku\": \"half\", \"qty\": 5}]");
    world_runs(0, "run --once --jobs orders"); /* by the clock: it was just sold */
    world_do(
        "UPDATE subscriptions SET state = 'parked' WHERE subscription_id = 1;"
        "INSERT INTO lock_incidents (resource, token, worker, kind, phase, detail)"
        " VALUES ('subscription:1', 1, 'w', 'parked', 'apply', 'a broken wallet')");
    holder = session("the-holder");
    waiter = session("the-waiter");
    PQclear(PQexec(holder, take));
    assert_int_equal(PQsendQuery(waiter, take), 1);
    world_wait_blocked();
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        start_in("status --watch", sizes[i][0], sizes[i][1]);
        next_frame(frame, sizeof frame);
        for (size_t k = 0; k < sizeof shown / sizeof shown[0]; k++)
            fixture_assert_contains(frame, shown[k]);
        assert_fits(frame, sizes[i][0], sizes[i][1]);
        stop_watching();
    }
    world_runs(0, "status");
    for (size_t k = 0; k < sizeof shown / sizeof shown[0]; k++)
        fixture_assert_contains(said.out, shown[k]);
    fits_80_columns();
    PQfinish(waiter);
    PQfinish(holder);
}

/* Guarantee: Of 64 workers `status --watch` shows in 80 x 24 as many as fit, and counts
 * the others; the other parts keep their places. */
CASE(workers_that_do_not_fit_are_counted)
{
    char frame[1 << 14];

    world_do(
        "INSERT INTO workers (pool, slot, job, host, pid, started_at, seen_at, "
        "counters) SELECT 'crowd', g, 'orders', 'h', g, now(), now() + interval '1 "
        "day', '{}' FROM generate_series(0, 63) AS g");
    start_on_terminal("status --watch");
    next_frame(frame, sizeof frame);
    assert_fits(frame, 24, 80);
    fixture_assert_contains(frame, "crowd");
    fixture_assert_contains(frame, "MOST WANTED SKU");
    fixture_assert_contains(frame, "INCIDENT");
    assert_non_null(strstr(frame, "and "));
    assert_in_range(atoi(strstr(frame, "and ") + 4), 40, 63);
    stop_watching();
}

/* Guarantee: `status --watch` prints each second, on a terminal and in a pipe, how old
 * its figures are, and goes on while PostgreSQL does not answer. */
CASE(watched_status_says_how_old_its_figures_are)
{
    pid_t backend;

    start_on_terminal("status --watch | cat");
    wait_for("read ", 0);
    for (int i = 0; i < 3; i++) {
        size_t from = t.n;

        wait_for(", read ", from);
    }
    assert_null(strstr(t.said, "\033["));
    assert_null(strstr(t.said, "so far"));
    backend = (pid_t)
        super_ask(/* the second of its sessions */
                  "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND "
                  "application_name = 'ledgerlock status' ORDER BY backend_start DESC LIMIT 1");
    assert_true(backend > 0);
    assert_int_equal(kill(backend, SIGSTOP), 0);
    wait_for("read 4.", t.n);
    wait_for("Not known; it was: 0 charged twice", t.n);
    assert_int_equal(kill(backend, SIGCONT), 0);
    wait_for(" ms ago", t.n);
    assert_int_equal(kill(t.pid, SIGTERM), 0);
    (void)end_on_terminal();
}

/* Guarantee: `status --watch` goes on after PostgreSQL ended its session, and says why
 * its figures are old until then. */
CASE(watched_status_outlives_its_session, .open = open_empty)
{
    start_on_terminal("status --watch");
    wait_for(", read ", 0);
    fixture_pause_ms(3000);
    world_do("ALTER FUNCTION check_newest RENAME TO check_gone");
    wait_for("Not known; it was: 0 charged twice", t.n);
    wait_for("ago; ", 0);
    world_do("ALTER FUNCTION check_gone RENAME TO check_newest");
    super_do("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = "
             "current_database() AND application_name = 'ledgerlock status'");
    t.n = 0;
    fixture_pause_ms(3000);
    wait_for("0 charged twice", 0);
    for (int i = 0; i < 30; i++) {
        t.n = 0;
        wait_for(", read ", 0);
        wait_for("INCIDENT", 0);
        if (strstr(t.said, "Not known") == NULL)
            break;
    }
    assert_null(strstr(t.said, "Not known"));
    stop_watching();
}
