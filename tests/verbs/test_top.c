/* top, in terminals of 80 x 24 and 120 x 50: what it shows, what its keys do, and that
 * it leaves the terminal as it was. */
#include <libpq-fe.h>

#include "tests/lib/forged_rows.h"
#include "tests/lib/steps.h"
#include "tests/lib/terminal.h"

static const struct pool_work small = {
    .users = 20, .periods = 3, .orders = 30, .units = 10};

WORLD(.work = &small);

/* Guarantee: `top` shows verdict, backlog, workers and SKUs, and q leaves the terminal
 * as it was. */
CASE(top_shows_the_pools_and_q_restores_the_terminal)
{
    world_run(pool_work_now());
    start_top();
    wait_for("0 charged twice, 0 oversold, 0 totals wrong", 0);
    wait_for("No pool has made a whole audit yet", 0);
    wait_for("billing", 0);
    wait_for("MOST WANTED SKU", 0);
    press_for("?", "show the workers whose pool");
    press_for("x", "0 charged twice");
    press_for("p", "PAUSED");
    press("p");
    press("/nobody\n");
    wait_for("no worker was seen", 0);
    wait_for(", read ", 0);
    press_for("\033/aa\n\014", "? help   /aa"); /* Escape ends the filter */
    fixture_pause_ms(2500); /* the time after which other verbs tell their progress */
    press_for("\014", "? help"); /* the screen anew: behind all that was written */
    assert_null(strstr(t.said, "so far"));
    quit_top();
}

WORLD_OPEN(open_empty, .work = NULL)

/* Guarantee: `top` says 1 charged twice, 1 oversold and 1 total wrong as soon as one of
 * each is there. */
CASE(top_shows_what_a_failed_guard_leaves, .open = open_empty)
{
    super_do("%s", forged_rows);
    start_top();
    wait_for("0 charged twice, 0 oversold, 0 totals wrong", 0);
    super_do(FORGED_BY_HAND FORGED_CHARGE FORGED_UNIT FORGED_WALLET);
    wait_for("1 charged twice, 1 oversold, 1 totals wrong", 0);
    quit_top();
}

/* Guarantee: `top` shows what the last whole audit of a pool found, and its age. */
CASE(top_shows_the_last_whole_audit)
{
    world_do("INSERT INTO audits (ended_at, took_ms, invariants, broken) VALUES"
             " (now() - interval '100000 s', 5, 66, '{one_charge_per_period}')");
    start_top();
    wait_for("BROKEN, 1 d 3 h ago", 0);
    wait_for("one_charge_per_period", 0);
    world_do("SELECT report_audit(5, 66, '[]')");
    wait_for("no promise is broken, ", 0);
    quit_top();
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

/* Guarantee: `top` shows the sessions that wait and their holders, parked rows with
 * their reason, and what is left of a SKU as a bar, in a small window and in a large
 * one. */
CASE(top_shows_who_waits_parked_rows_and_stock_bars)
{
    static const unsigned short sizes[][2] = {{24, 80}, {50, 120}};
    static const char take[] = "SELECT pg_advisory_lock(4711)";
    PGconn *holder, *waiter;

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
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        start_top_in(sizes[i][0], sizes[i][1]);
        wait_for("the-waiter", 0);
        wait_for("the-holder", 0);
        wait_for("1 a broken wallet", 0); /* not the incident */
        wait_for("half", 0);
        wait_for("[#", 0);
        wait_for("INCIDENT", 0);
        quit_top();
    }
    PQfinish(waiter);
    PQfinish(holder);
}

/* The workers as they stand there when the help is left, which draws all lines anew. */
static void assert_order(const char *first, const char *second)
{
    size_t from;

    press_for("?", "show the workers whose pool");
    from = t.n;
    press("x");
    wait_for(first, from);
    wait_for(second, from);
    assert_true(strstr(t.said + from, first) < strstr(t.said + from, second));
}

/* Guarantee: s sorts the workers by slot, by batches, and by busy keys. */
CASE(s_sorts_the_workers)
{
    world_do(
        "INSERT INTO workers (pool, slot, job, host, pid, started_at, seen_at, "
        "counters) VALUES ('aaaa', 0, 'orders', 'h', 1, now(), now() + interval '1 "
        "day', '{\"batches\": 1, \"busy\": 9}'), ('bbbb', 0, 'orders', 'h', 2, "
        "now(), now() + interval '1 day', '{\"batches\": 5, \"busy\": 1}')");
    start_top_in(50, 120);
    wait_for("bbbb", 0);
    wait_for("known of a pool with a page", 0);
    assert_order("aaaa", "bbbb");
    press("s");
    assert_order("bbbb", "aaaa");
    press("s");
    assert_order("aaaa", "bbbb");
    quit_top();
}

/* Ends it by each of them. */
static void assert_ends_by(const int *sigs, size_t n, bool is_crash)
{
    for (size_t i = 0; i < n; i++) {
        start_top();
        wait_for("0 charged twice", 0);
        assert_int_equal(kill(t.pid, sigs[i]), 0);
        assert_restored_by(is_crash ? sigs[i] : 0);
    }
}

/* Guarantee: A crash of `top` leaves the terminal as it was. */
CASE(crash_restores_the_terminal)
{
    assert_ends_by((const int[]){SIGABRT, SIGSEGV}, 2, true);
}

/* Guarantee: A signal ends `top`, and the terminal is as it was. */
CASE(signal_restores_the_terminal)
{
    assert_ends_by((const int[]){SIGTERM, SIGINT, SIGHUP, SIGQUIT}, 4, false);
}

/* Guarantee: A signal ends `top` at once also while PostgreSQL does not answer it. */
CASE(signal_ends_a_top_that_waits)
{
    int64_t begun_ms;
    pid_t session;

    start_top();
    wait_for("0 charged twice", 0);
    session = (pid_t)world_ask("SELECT pid FROM pg_stat_activity WHERE datname = "
                               "current_database() AND application_name = "
                               "'ledgerlock top'");
    assert_true(session > 0);
    assert_int_equal(kill(session, SIGSTOP), 0);
    fixture_pause_ms(3000); /* it reads once a second, and waits for 35 s */
    begun_ms = fixture_now_ms();
    assert_int_equal(kill(t.pid, SIGTERM), 0);
    assert_restored();
    begun_ms = fixture_now_ms() - begun_ms;
    assert_int_equal(kill(session, SIGCONT), 0);
    assert_in_range(begun_ms, 0, 6000);
}

/* Guarantee: Without a terminal `top` says so. */
CASE(without_a_terminal_it_says_so)
{
    world_says(2, "top needs a terminal", "top");
}
