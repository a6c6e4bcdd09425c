/* forgeries: the functions of a worker beside a client that writes the same rows. A
 * worker that lies is told in tests/sql/forgeries.sql. */
#include "tests/lib/forged_rows.h"
#include "tests/lib/runs.h"
#include "tests/lib/session.h"

static struct fixture f;
static PGconn *worker;

static void open_all(void)
{
    char url[FIXTURE_URL];

    fixture_open_migrated(&f);
    fixture_exec(f.url, forged_rows);
    fixture_url_as(&f, "ledgerlock_worker", url, sizeof url);
    worker = session_open(url);
}

static void close_all(void)
{
    PQfinish(worker);
    fixture_close(&f);
}

GROUP(.start = open_all, .stop = close_all);

#define CHARGE                                                                         \
    "SELECT * FROM apply_charges(9, 'w', NULL, '{4}', ARRAY[(SELECT ctid FROM"         \
    " subscriptions WHERE subscription_id = 4)], '{1}', 1000)"

/* ---- without a claim ---- */

/* A client writes the rows while an apply that has claimed nothing reads them. */
static const struct {
    const char *name, *sql;
} meanwhile[] = {
    {"deposit", "SELECT deposit(1, 'USD', 50, 'k')"},
    {"cancellation", "SELECT cancel_subscription(1, 4)"},
};

CASE_ROWS(apply_without_a_claim_writes_nothing_beside_a, meanwhile)
{
    PGconn *client = session_open(f.url);

    session_do(client, "SET lock_timeout = '60s'; BEGIN");
    session_do(client, row->sql);
    session_do(worker, "BEGIN");
    session_sticks(worker, CHARGE, f.url);
    session_do(client, "COMMIT");
    PQfinish(client);
    session_refused("XX000", PQgetResult(worker));
    assert_null(PQgetResult(worker));
    session_do(worker, "ROLLBACK");
}

/* ---- beside a client ---- */

/* Guarantee: A subscription that a worker parks while its period is written off stays
 * parked. */
CASE(period_is_not_written_off_while_a_worker_parks_its_subscription)
{
    PGconn *client = session_open(f.url);
    PGresult *res;

    session_do(worker, "BEGIN");
    session_do(worker, "SELECT park_rows('billing', '{7}', 9, 'w', 'why')");
    session_do(client, "SET lock_timeout = '60s'; BEGIN");
    session_sticks(client,
                   "SELECT write_off(user_id, 7, next_period_no, 'gone', 'k')"
                   " FROM subscriptions WHERE subscription_id = 7",
                   f.url);
    session_do(worker, "COMMIT");
    res = PQgetResult(client);
    promise_true(PQresultStatus(res) == PGRES_FATAL_ERROR);
    session_refused("LL003", res);
    PQfinish(client);
    fixture_exec(f.url,
                 "SET search_path = ledgerlock; SELECT release_rows('billing', '{7}')");
}
