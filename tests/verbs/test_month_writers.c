/* months beside writers: a month is closed only when nobody is in the middle of a write
 * of it, nobody writes into it afterwards, and nobody can keep one from being made. */
#include <libpq-fe.h>

#include "tests/lib/audit_world.h"
#include "tests/lib/pool_world.h"
#include "tests/lib/runs.h"
#include "tests/lib/session.h"

static struct fixture f;

/* The first month that can be closed is 2023-04. */
static void open_world(void)
{
    fixture_open_migrated(&f);
    audit_world_put(f.url, 4);
    fixture_exec(f.url, "SET search_path = ledgerlock;"
                        "ALTER TABLE orders ALTER order_id RESTART WITH 1000;"
                        "ALTER TABLE subscriptions ALTER subscription_id RESTART WITH"
                        " 1000");
}

static void close_world(void)
{
    fixture_close(&f);
}

GROUP(.open = open_world, .close = close_world);

/* ---- in flight ---- */

/* clang-format off */
static const struct {
    const char *name, *sql, *says;
} in_flight[] = {
    {"order", "SELECT place_order(1, 'late', '[{\"sku\": \"A\", \"qty\": 1}]', '2023-04-20')", "and 1 orders that are not decided"},
    {"subscription", "SELECT subscribe(1, 'late', 5, 'USD', 'month', 1, '2023-04-20', 0, 'late')", "1 subscriptions with a period that is not settled"},
};

/* clang-format on */

/* A client has written and does not commit, and close-month waits for it. */
static PGconn *keep_waiting(struct fixture_child *closing, const char *sql)
{
    PGconn *client = session_open(f.url);

    session_do(client, "BEGIN");
    session_do(client, sql);
    fixture_spawn(&f, closing, "close-month", "2023-04", NULL);
    FIXTURE_AWAIT(fixture_query_int8(
                      f.url, "SELECT (SELECT count(*) FROM ledgerlock.seals) + count(*)"
                             " FROM pg_locks WHERE NOT granted AND mode = 'ShareLock'"
                             " AND locktype = 'relation'") > 0,
                  "nothing waits for the client");
    promise_int_equal(
        fixture_query_int8(f.url, "SELECT count(*) FROM ledgerlock.seals"), 0);
    return client;
}

/* Guarantee: A month is not closed over an order or a subscription that somebody is in
 * the middle of making. */
CASE_ROWS(month_is_not_closed_over_an_uncommitted, in_flight)
{
    struct fixture_child closing;
    PGconn *client = keep_waiting(&closing, row->sql);

    session_do(client, "COMMIT");
    PQfinish(client);
    pool_assert_ends(&closing, 6);
    pool_log_wait(&closing, row->says);
}

/* clang-format off */
static const struct {
    const char *name, *sql;
} booked[] = {
    {"deposit", "SELECT deposit(3, 'EUR', 5, 'late', '2023-04-20')"},
    {"refund", "SELECT refund(3, 'charge', 5, 0, 5, 'late', 'late', '2023-04-20')"},
    {"withdrawal", "SELECT withdraw(3, 'EUR', 5, 'late', 'late', '2023-04-20')"},
    {"proration", "SELECT change_now(3, 5, 'year', 2, 2600, 'late', '2023-04-20')"},
    {"delivery", "SELECT receive_stock('A', 'late', 5, '2023-04-20')"},
    {"adjustment", "SELECT adjust_stock('A', -1, 'late', 'late', '2023-04-20')"},
    {"return", "SELECT return_units(1, 7, 'D', 1, 'late', 'late', '2023-04-20')"},
};

/* clang-format on */

/* Guarantee: A month is closed only when whoever is in the middle of booking a deposit,
 * a correction, new terms or units has committed, and with that row. */
CASE_ROWS(month_is_closed_with_an_uncommitted, booked)
{
    struct fixture_child closing;
    PGconn *client = keep_waiting(&closing, row->sql);

    session_do(client, "COMMIT");
    PQfinish(client);
    assert_int_equal(fixture_wait(&closing, 60, &said), 0);
    shows("closed 2023-04: 3 rows are proved and sealed");
    runs(&f, 0, "audit --sealed --lag 36500d");
}

enum { WAIT_MS = 1000 }; /* half a second, and what the machine needs */

/* Deposits again and again, beside the test. */
static pid_t keep_depositing(void)
{
    pid_t pid = fixture_fork();
    PGconn *conn;

    if (pid != 0)
        return pid;
    conn = session_open(f.url);
    for (int i = 0;; i++) {
        char sql[80];

        (void)snprintf(sql, sizeof sql, "SELECT deposit(1, 'USD', 1, 'often %d')", i);
        session_do(conn, sql);
    }
}

/* The longest time between two of its deposits, in ms. */
#define LONGEST                                                                         \
    "SELECT extract(epoch FROM max(took) * 1000)::bigint FROM (SELECT recorded_at -"    \
    " lag(recorded_at) OVER (ORDER BY entry_id) AS took FROM ledgerlock.wallet_entries" \
    " WHERE idempotency_key LIKE 'often %') AS d"

/* Guarantee: While close-month waits for those who write, no deposit waits for it
 * longer than half a second, whichever tables are written. */
CASE(close_that_waits_keeps_no_deposit_for_long)
{
    static const char *const tables[] = {"wallet_entries", "stock_entries", "orders",
                                         "subscriptions"};
    PGconn *writers[4];
    struct fixture_child closing;
    char sql[200];
    pid_t depositor;
    int64_t longest;

    for (size_t i = 0; i < 4; i++) {
        writers[i] = session_open(f.url);
        (void)snprintf(sql, sizeof sql, "BEGIN; LOCK TABLE %s IN ROW EXCLUSIVE MODE",
                       tables[i]);
        session_do(writers[i], sql);
    }
    depositor = keep_depositing();
    fixture_spawn(&f, &closing, "close-month", "2023-04", NULL);
    for (size_t i = 0; i < 4; i++) {
        (void)snprintf(sql, sizeof sql,
                       "SELECT count(*) FROM pg_locks WHERE NOT granted AND mode ="
                       " 'ShareLock' AND relation = 'ledgerlock.%s'::regclass",
                       tables[i]);
        FIXTURE_AWAIT(fixture_query_int8(f.url, sql) > 0, "nobody waits for %s",
                      tables[i]);
        fixture_pause_ms(350);
        session_do(writers[i], "COMMIT");
        PQfinish(writers[i]);
    }
    assert_int_equal(fixture_wait(&closing, 60, &said), 0);
    assert_int_equal(kill(depositor, SIGKILL), 0);
    assert_int_equal(waitpid(depositor, NULL, 0), depositor);
    longest = fixture_query_int8(f.url, LONGEST);
    if (longest == 0 || longest >= WAIT_MS)
        promise_broken("a deposit waited %" PRId64 " ms", longest);
}

/* Guarantee: close-month holds nothing while it proves the months; what is written to
 * the month meanwhile is proved, too. */
CASE(nothing_is_held_while_the_months_are_proved)
{
    PGconn *holder = session_open(f.url), *owner = session_open(f.url);
    struct fixture_child closing;

    session_do(holder, "BEGIN; LOCK TABLE stock IN ACCESS EXCLUSIVE MODE");
    fixture_spawn(&f, &closing, "close-month", "2023-04", NULL);
    FIXTURE_AWAIT(fixture_query_int8(f.url, "SELECT count(*) FROM pg_locks WHERE NOT"
                                            " granted AND relation ="
                                            " 'ledgerlock.stock'::regclass") > 0,
                  "the audit does not wait");
    session_do(owner, "SET lock_timeout = '5s'; SELECT deposit(3, 'EUR', 5,"
                      " 'meanwhile', '2023-04-20')");
    session_do(holder, "COMMIT");
    PQfinish(owner);
    PQfinish(holder);
    assert_int_equal(fixture_wait(&closing, 60, &said), 0);
    shows("closed 2023-04: 3 rows are proved and sealed");
    runs(&f, 0, "audit --sealed --lag 36500d");
}

/* Guarantee: An old entry that the owner books while a month is being closed is sealed
 * with the month, or refused. */
CASE(old_entry_waits_for_the_month_that_is_being_closed)
{
    PGconn *closing = session_open(f.url), *owner = session_open(f.url);
    PGresult *res;

    session_do(closing, "BEGIN ISOLATION LEVEL REPEATABLE READ; LOCK TABLE"
                        " charges_2023_04, seals IN SHARE ROW EXCLUSIVE MODE; SELECT"
                        " close_month('2023-04-01')");
    assert_int_equal(PQsendQuery(owner, "SELECT deposit(3, 'EUR', 5, 'race',"
                                        " '2023-04-20')"),
                     1);
    FIXTURE_AWAIT(fixture_query_int8(f.url, "SELECT count(*) FROM pg_locks WHERE NOT"
                                            " granted AND relation ="
                                            " 'ledgerlock.seals'::regclass") > 0,
                  "the deposit does not wait");
    session_do(closing, "COMMIT");
    res = PQgetResult(owner);
    session_refused("23001", res);
    PQfinish(closing);
    PQfinish(owner);
    runs(&f, 0, "audit --sealed --lag 36500d");
}

/* ---- months that are made ---- */

/* Guarantee: A reader keeps nobody from making a month, whatever locks it takes. */
CASE(month_is_made_beside_a_reader_with_every_lock_it_can_take)
{
    char url[FIXTURE_URL];
    PGconn *reader, *writer = session_open(f.url);

    fixture_url_as(&f, "ledgerlock_reader", url, sizeof url);
    reader = session_open(url);
    session_do(reader, "BEGIN; LOCK TABLE months, charges IN ACCESS SHARE MODE;"
                       " SELECT pg_advisory_lock(hashtext('ledgerlock months'))");
    session_do(writer, "SELECT make_months('2010-01-01', '2010-01-01')");
    session_refused("42501",
                    PQexec(reader, "LOCK TABLE months IN SHARE ROW EXCLUSIVE MODE"));
    PQfinish(reader);
    PQfinish(writer);
}
