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
    fixture_exec(f.url,
                 "SET search_path = ledgerlock;"
                 "ALTER TABLE orders ALTER order_id RESTART WITH 1000;"
                 "ALTER TABLE subscriptions ALTER subscription_id RESTART WITH"
                 " 1000; ALTER TABLE deposits ALTER deposit_id RESTART WITH 1000");
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

/* Guarantee: A month is not closed over an order or a subscription that somebody is in
 * the middle of making. */
CASE_ROWS(month_is_not_closed_over_an_uncommitted, in_flight)
{
    PGconn *client = session_open(f.url);
    struct fixture_child closing;

    session_do(client, "BEGIN");
    session_do(client, row->sql);
    fixture_spawn(&f, &closing, "close-month", "2023-04", NULL);
    FIXTURE_AWAIT(fixture_query_int8(
                      f.url, "SELECT (SELECT count(*) FROM ledgerlock.seals) + count(*)"
                             " FROM pg_locks WHERE NOT granted AND mode = 'ShareLock'"
                             " AND locktype = 'relation'") > 0,
                  "nothing waits for the client");
    promise_int_equal(
        fixture_query_int8(f.url, "SELECT count(*) FROM ledgerlock.seals"), 0);
    session_do(client, "COMMIT");
    PQfinish(client);
    pool_assert_ends(&closing, 6);
    pool_log_wait(&closing, row->says);
}

/* ---- afterwards ---- */

/* As close-month does for the month that runs, at the end of the month that follows. */
#define SEAL                                                                           \
    "INSERT INTO seals (month, table_name, kind, currency, row_ct, total, checksum)"   \
    " SELECT date_trunc('month', now(), 'UTC'), 'charges', '', '', 0, 0, 0"

#define ORDER(key)                                                                     \
    "SELECT place_order(1, '" key "', '[{\"sku\": \"A\", \"qty\": 1}]', at)"
#define AT(at, sql) "WITH t AS (SELECT " at " AS at) " sql " FROM t"

static const struct {
    const char *name, *sql;
} late[] = {
    {"order", AT("now()", ORDER("late"))},
    {"subscription",
     AT("now()", "SELECT subscribe(1, 'late', 5, 'USD', 'month', 1, at, 0, 'late')")},
};

/* Guarantee: Nobody orders or subscribes in a closed month. */
CASE_ROWS(closed_month_takes_no, late)
{
    PGconn *client = session_open(f.url);

    session_do(client, SEAL);
    session_refused("LL004", PQexec(client, row->sql));
    PQfinish(client);
}

/* ---- months that are made ---- */

/* Guarantee: A reader keeps nobody from making a month, whatever locks it takes. */
CASE(month_is_made_beside_a_reader_with_every_lock_it_can_take)
{
    char url[FIXTURE_URL];
    PGconn *reader, *writer = session_open(f.url);

    fixture_url_as(&f, "ledgerlock_reader", url, sizeof url);
    reader = session_open(url);
    session_do(reader, "BEGIN; LOCK TABLE months, transfers IN ACCESS SHARE MODE;"
                       " SELECT pg_advisory_lock(hashtext('ledgerlock months'))");
    session_do(writer, "SELECT make_months('2010-01-01', '2010-01-01')");
    session_do(writer, "SELECT deposit(1, 'USD', 5, 'old', '2010-02-05')");
    session_refused("42501",
                    PQexec(reader, "LOCK TABLE months IN SHARE ROW EXCLUSIVE MODE"));
    PQfinish(reader);
    PQfinish(writer);
}
