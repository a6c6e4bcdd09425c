/* progress: what work that takes longer than two seconds says, on a terminal and into a
 * pipe. Another session holds a lock until it was said. */
#include <libpq-fe.h>
#include <stdlib.h>
#include <unistd.h>

#include "ops/cli/progress.h"
#include "tests/lib/steps.h"
#include "tests/lib/terminal.h"

WORLD(.role = "ledgerlock_owner");

static PGconn *held; /* by this session, in a transaction */

static void hold(const char *sql)
{
    held = super_open();
    PQclear(PQexec(held, "BEGIN"));
    PQclear(PQexec(held, sql));
    assert_int_equal(PQtransactionStatus(held), PQTRANS_INTRANS);
}

static void let_go(void)
{
    PQfinish(held);
}

#define HOLD_LOAD "SELECT pg_advisory_xact_lock(hashtext('ledgerlock load'))"
#define HOLD(table) "LOCK TABLE " table " IN ACCESS EXCLUSIVE MODE"

/* clang-format off */
static const struct {
    const char *name, *words, *hold, *says;
} work[] = {
    {"seed_that_waits", "seed", HOLD_LOAD, "ledgerlock seed: waiting for another seed or import, "},
    {"import_that_waits", "import --stock /dev/null", HOLD_LOAD, "ledgerlock import: waiting for another"},
    {"audit", "audit", HOLD("lock_incidents"), "ledgerlock audit: invariant "},
    {"audit_that_waits", "audit --wait 300s", HOLD("subscriptions"), "ledgerlock audit: waiting until nothing is due"},
    {"migrate", "migrate", "UPDATE schema_migrations SET checksum = checksum; "
     HOLD("schema_migrations"), "ledgerlock migrate: "},
    {"close_month", "close-month 2024-01", HOLD("months"), "ledgerlock close-month: "},
    {"run_that_makes_months", "run --once", HOLD("months"), "ledgerlock run: making the months"},
    {"doctor", "doctor", HOLD("orders"), "ledgerlock doctor: "},
    {"report", "report", HOLD("wallet_entries"), "ledgerlock report: asking PostgreSQL, "},
    {"status", "status", HOLD("subscriptions"), "ledgerlock status: asking PostgreSQL, "},
};

/* clang-format on */

/* Guarantee: Work that takes longer than two seconds says on a terminal, in a line that
 * moves and is taken away at the end, which work it is; NO_COLOR does not matter. */
CASE_ROWS(terminal_is_told_of, work)
{
    const char *last;

    (void)setenv("NO_COLOR", "1", 1);
    hold(row->hold);
    start_on_terminal(row->words);
    wait_for(row->says, 0);
    wait_for(" s so far", 0);
    let_go();
    (void)end_on_terminal();
    for (const char *at = last = t.said; (at = strstr(at, row->says)) != NULL; at++)
        last = at;
    assert_in_range(strcspn(last, "\r"), 1, 79);
}

/* Guarantee: A seed and an import count on a terminal what they have stored, and say
 * how long it takes still. */
CASE(rows_of_a_seed_are_counted)
{
    hold(HOLD("events"));
    start_on_terminal("seed --users 10 --subscriptions 60000 --skus 1 --orders 0");
    wait_for("subscriptions: 0 of 60,000, 2.", 0);
    let_go();
    wait_for("subscriptions: 20,000 of 60,000, about ", 0);
    wait_for("subscriptions: 40,000 of 60,000, about ", 0);
    wait_for("\r\033[Kseeded 10 users", 0);
    assert_int_equal(end_on_terminal(), 0);
}

CASE(orders_of_an_import_are_counted)
{
    char path[FIXTURE_URL], words[FIXTURE_URL + 32];
    FILE *file;

    world_sku(1, "A", 50000, 100);
    fixture_file(path, sizeof path, "", 0600);
    file = fopen(path, "w");
    assert_non_null(file);
    (void)fputs("order_ref,customer_ref,sku,quantity,unit_price,placed_at\n", file);
    for (int i = 0; i < 50000; i++)
        (void)fprintf(file, "o%d,c%d,A,1,1.00,2024-01-01T00:00:00Z\n", i, i % 100);
    assert_int_equal(fclose(file), 0);
    (void)snprintf(words, sizeof words, "import --orders %s", path);
    hold(HOLD_LOAD);
    start_on_terminal(words);
    wait_for("waiting for another seed or import", 0);
    let_go();
    wait_for("lines of ", 0);
    wait_for(": 40,000", 0);
    wait_for("storing orders, step ", 0);
    wait_for(": 20,000 of 50,000", 0);
    wait_for("storing order lines", 0);
    wait_for("orders: 50000 new", 0);
    assert_int_equal(end_on_terminal(), 0);
    assert_int_equal(world_ask("SELECT count(*) FROM order_lines"), 50000);
    (void)unlink(path);
}

/* Guarantee: Into a pipe such work writes a whole line every ten seconds. */
CASE(pipe_gets_a_line_every_ten_seconds)
{
    static const char line[] = "ledgerlock seed: waiting for another seed or import, ";
    struct fixture_child child;
    char text[sizeof line] = "";

    hold(HOLD_LOAD);
    starts(&world.f, &child, "seed");
    FIXTURE_AWAIT(pread(child.err_fd, text, sizeof text - 1, 0) == sizeof text - 1,
                  "it said: %s", text);
    let_go();
    assert_string_equal(text, line);
    assert_int_equal(fixture_wait(&child, 120, NULL), 0);
}

/* clang-format off */
static const struct {
    const char *name, *words, *says;
    bool has_zeros;
} logs[] = {
    {"people", "",                      ", all due rows in about ", false},
    {"files",  " --log-format logfmt ", " burn_down_s=",                 true},
};

/* clang-format on */

/* Guarantee: The log of `run --once` says how long it takes still; on a terminal it
 * leaves out counters that are 0. */
CASE_ROWS(progress_of_a_run_in_the_log_for, logs)
{
    char words[200];
    char *line;

    for (int user = 1; user <= 2; user++) {
        world_user(user, 1000);
        world_subscription(user, user, 100, "2024-01-01Z");
    }
    fixture_become(&world.f, "ledgerlock_worker");
    (void)setenv("LEDGERLOCK_LOCKS_PREFIX", world.f.prefix, 1);
    (void)snprintf(words, sizeof words,
                   "run --once --jobs billing --now 2024-01-02T00:00:00Z%s",
                   row->words);
    hold("SELECT FROM ledgerlock.users WHERE user_id = 2 FOR UPDATE");
    start_on_terminal(words);
    wait_for(row->says, 0);
    let_go();
    assert_int_equal(end_on_terminal(), 0);
    line = strstr(t.said, "pool.progress");
    assert_non_null(line);
    line[strcspn(line, "\n")] = '\0';
    assert_int_equal(strstr(line, "lost=0") != NULL, row->has_zeros);
}

/* ---- the line, by made-up times ---- */

static const char *line_at(const struct progress *p, int64_t now_ms, size_t columns)
{
    static char line[PROGRESS_LINE];

    return progress_line(p, now_ms, columns, line);
}

/* Guarantee: Work of less than two seconds says nothing. */
CASE(line_comes_after_two_seconds_and_into_a_pipe_each_ten)
{
    const struct progress p = {.begun_ms = 1000};

    assert_int_equal(progress_wait_ms(&p, true, 1000), 2000);
    assert_int_equal(progress_wait_ms(&p, true, 2999), 1);
    assert_in_range(progress_wait_ms(&p, true, 3000), 1, 1000);
    assert_int_equal(progress_wait_ms(&p, false, 1000), 10000);
    assert_int_equal(progress_wait_ms(&p, false, 11001), 9999);
}

CASE(line_says_what_how_much_and_how_long)
{
    struct progress p = {.name = "x", .what = "rows", .done = -1, .work_ms = 10};

    assert_string_equal(line_at(&p, 900, 80), "x: rows");
    assert_string_equal(line_at(&p, 90010, 80), "x: rows, 1 min 30 s so far");
    p.done = 400000;
    assert_string_equal(line_at(&p, 20010, 80), "x: rows: 400,000, 20 s so far");
    p.total = 1000000;
    assert_string_equal(line_at(&p, 20010, 80),
                        "x: rows: 400,000 of 1,000,000, about 30 s still");
    assert_string_equal(line_at(&p, 20010, 44),
                        "x: r: 400,000 of 1,000,000, about 30 s still");
    assert_string_equal(line_at(&p, 20010, 7), ": 400,0");
    p.total = p.done = 0;
    assert_string_equal(line_at(&p, 7322010, 80), "x: rows: 0, 2 h 2 min so far");
    p.done = -1;
    (void)strcpy(p.what, "a\033[2Jb\303\274");
    assert_string_equal(line_at(&p, 10, 9), "x: a?[2Jb");
    assert_string_equal(line_at(&p, 10, 10), "x: a?[2Jb");
}
