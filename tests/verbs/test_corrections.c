/* corrections: withdrawals, write-offs and orders that are taken back while a pool
 * works the same users. The functions by themselves are told in tests/sql. */
#include "tests/lib/client.h"
#include "tests/lib/session.h"

enum { ORDERS = 400 };

/* User 1 pays 100 for a period of ten days that is running, and 210 for three units of
 * A; user 2 cannot pay 50. */
static void prepare(void)
{
    client_open();
    world_user(1, 1000);
    world_user(2, 10);
    world_sku(1, "A", 10, 70);
    world_do(
        "INSERT INTO subscriptions (subscription_id, user_id, plan, amount_minor,"
        " currency, anchor_at, unit, every, next_due_at) SELECT n, n, 'p', 150 - 50"
        " * n, 'USD', at, 'day', 10, at FROM generate_series(1, 2) AS n, CAST(now()"
        " - interval '49 hours' AS timestamptz) AS at");
    world_do("SELECT place_order(1, 'k', '[{\"sku\": \"A\", \"qty\": 3}]')");
    world_runs(0, "run --once");
}

WORLD(.role = "ledgerlock_owner", .also = prepare);

static void audit(void)
{
    world_runs(0, "audit --lag 0s");
}

/* Guarantee: Withdrawals and write-offs while a pool charges the same users leave every
 * wallet what its entries say, and nobody is charged for a period that was given up.
 */
CASE(withdrawals_and_write_offs_meet_charges)
{
    PGconn *conn = PQconnectdb(client);
    int paid_out = 0, given_up = 0;

    world_do(
        "INSERT INTO users (user_id, currency) SELECT n, 'USD' FROM"
        " generate_series(10, 109) AS n; SELECT deposit(n, 'USD', 300, 'k') FROM"
        " generate_series(10, 109) AS n; INSERT INTO subscriptions"
        " (subscription_id, user_id, plan, amount_minor, currency, anchor_at, unit,"
        " next_due_at) SELECT n, n, 'd', 10, 'USD', now() - interval '25 days',"
        " 'day', now() - interval '25 days' FROM generate_series(10, 109) AS n");
    pool_start("run -w 2 --jobs billing --batch 4");
    world_wait("SELECT count(*) > 10 FROM ledgerlock.charges");
    for (int round = 0; round < 40 && given_up < 20; round++)
        for (int user = 109; user >= 10; user--) {
            char sql[160];
            PGresult *res;

            (void)snprintf(sql, sizeof sql,
                           "SELECT withdraw(%d, 'USD', 40, 'asked for', '%d')", user,
                           round);
            res = PQexec(conn, sql);
            paid_out += PQresultStatus(res) == PGRES_TUPLES_OK;
            PQclear(res);
            (void)snprintf(
                sql, sizeof sql,
                "SELECT write_off(%d, %d, next_period_no, 'gone', 'w%d') FROM"
                " subscriptions WHERE subscription_id = %d",
                user, user, round, user);
            res = PQexec(conn, sql);
            given_up += PQresultStatus(res) == PGRES_TUPLES_OK;
            PQclear(res);
        }
    PQfinish(conn);
    pool_stop();
    assert_true(paid_out > 100 && given_up >= 20);
    world_is(given_up, "SELECT count(*) FROM charges WHERE state = 'written_off'");
    world_is(
        0,
        "SELECT count(*) FROM ledger JOIN events ON event = 'written_off' AND source ="
        " subscription_id AND leg = from_period AND kind = 'charge'");
    assert_int_equal(
        world_ask("SELECT (SELECT max(recorded_at) FROM batches) > (SELECT"
                  " min(recorded_at) FROM wallet_entries WHERE kind = 'withdrawal')"),
        1);
    world_runs(0, "run --once");
    audit();
}

/* Guarantee: An order that its user takes back while a pool serves is either cancelled,
 * with nothing moved, or fulfilled. */
CASE(orders_taken_back_while_a_pool_serves_are_one_or_the_other)
{
    PGconn *conn;
    int cancelled = 0, late = 0;

    world_do(
        "SELECT receive_stock('A', '1', %d); INSERT INTO users (user_id, currency)"
        " SELECT 100 + n, 'USD' FROM generate_series(2, %d) AS n; SELECT deposit(100"
        " + n, 'USD', 100, 'k') FROM generate_series(2, %d) AS n; SELECT"
        " place_order(100 + n, 'k', '[{\"sku\": \"A\", \"qty\": 1}]') FROM"
        " generate_series(2, %d) AS n",
        ORDERS, ORDERS + 1, ORDERS + 1, ORDERS + 1);
    conn = PQconnectdb(client);
    pool_start("run --once --jobs orders --batch 2");
    world_wait("SELECT count(*) > 5 FROM ledgerlock.orders WHERE state = 'fulfilled'");
    for (int order = ORDERS + 1; order > 1;
         order--) { /* the pool begins with the first */
        char sql[64];
        PGresult *res;

        (void)snprintf(sql, sizeof sql, "SELECT cancel_order(%d, %d)", 100 + order,
                       order);
        res = PQexec(conn, sql);
        if (PQresultStatus(res) == PGRES_TUPLES_OK)
            cancelled++;
        else if (strcmp(PQresultErrorField(res, PG_DIAG_SQLSTATE), "LL003") == 0)
            late++;
        else
            fail_msg("%s: %s", sql, PQresultErrorMessage(res));
        PQclear(res);
    }
    PQfinish(conn);
    pool_assert_ends(&world.pool, 0);
    assert_true(cancelled > 0 && late > 0);
    world_is(cancelled, "SELECT count(*) FROM orders WHERE state = 'cancelled'");
    world_is(late,
             "SELECT count(*) FROM orders WHERE state = 'fulfilled' AND order_id >"
             " 1");
    world_is(late, "SELECT count(*) FROM stock_ledger WHERE kind = 'sale' AND source"
                   " > 1");
    audit();
}
