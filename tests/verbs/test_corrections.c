/* corrections: refunds, voids, withdrawals, write-offs, returns, adjustments and orders
 * that are taken back. Each is a new row that names what it undoes. */
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

static void wallet_is(int64_t minor)
{
    world_is(minor, "SELECT balance_minor FROM users WHERE user_id = 1");
}

static void audit(void)
{
    world_runs(0, "audit --lag 0s");
}

/* ---- money ---- */

/* Guarantee: A refund gives back part or all of what was paid, once per key, and never
 * more than was paid. */
CASE(refund_gives_back_in_parts_and_never_more_than_was_paid)
{
    wallet_is(690);
    assert_int_equal(ask("SELECT refund(1, 'charge', 1, 0, 30, 'late', 'a')"), 30);
    assert_int_equal(ask("SELECT refund(1, 'charge', 1, 0, 30, 'late', 'a')"), 30);
    wallet_is(720);
    refused("LL003", "SELECT refund(1, 'charge', 1, 0, 71, 'late', 'b')");
    assert_int_equal(ask("SELECT refund(1, 'charge', 1, 0, NULL, 'all', 'b')"), 70);
    refused("LL003", "SELECT refund(1, 'charge', 1, 0, 1, 'more', 'c')");
    assert_int_equal(ask("SELECT refund(1, 'payment', 1, 0, 210, 'broken', 'c')"), 210);
    refused("LL003", "SELECT refund(1, 'payment', 1, 0, 1, 'more', 'd')");
    wallet_is(1000);
    world_expect(
        "charge 1 0 100 0, charge 1 0 100 30, payment 1 0 210 0",
        "SELECT string_agg(concat_ws(' ', of_kind, of_source, of_leg, of_minor,"
        " before_minor), ', ' ORDER BY correction_id) FROM corrections");
    world_expect("captured", "SELECT state FROM charges WHERE subscription_id = 1");
    audit();
    world_runs(0, "run --once");
    wallet_is(1000);
}

CASE(refund_of_something_else_is_refused)
{
    assert_int_equal(ask("SELECT refund(1, 'charge', 1, 0, 30, 'late', 'a')"), 30);
    refused("LL001", "SELECT refund(1, 'charge', 1, 0, 31, 'late', 'a')");
    refused("LL001", "SELECT refund(1, 'payment', 1, 0, 30, 'late', 'a')");
    refused("LL002", "SELECT refund(2, 'charge', 1, 0, 30, 'late', 'b')");
    refused("LL002", "SELECT refund(1, 'charge', 1, 1, 30, 'late', 'b')");
    refused("LL002", "SELECT refund(1, 'deposit', 1, 1, 30, 'late', 'b')");
    refused("LL002", "SELECT refund(1, 'charge', 1, 0, 0, 'late', 'b')");
    refused("LL002", "SELECT refund(1, 'charge', 1, 0, 30, ' ', 'b')");
    refused("LL002", "SELECT refund(1, 'charge', 1, 0, 30, 'late', '')");
    refused("LL002", "SELECT refund(1, 'charge', 1, 0, 30, 'late', 'b', 'infinity')");
}

CASE(void_gives_back_the_whole_or_nothing)
{
    assert_int_equal(ask("SELECT void_transfer(1, 'charge', 1, 0, 'never', 'a')"), 100);
    assert_int_equal(ask("SELECT void_transfer(1, 'charge', 1, 0, 'never', 'a')"), 100);
    wallet_is(790);
    refused("LL003", "SELECT refund(1, 'charge', 1, 0, 1, 'more', 'a')");
    assert_int_equal(ask("SELECT refund(1, 'payment', 1, 0, 1, 'late', 'b')"), 1);
    refused("LL003", "SELECT void_transfer(1, 'payment', 1, 0, 'never', 'b')");
    audit();
    world_runs(0, "run --once");
    wallet_is(791);
}

/* Of ten days the seven that are left count. */
CASE(prorations_count_as_paid_for_their_period)
{
    assert_int_equal(ask("SELECT change_now(1, 1, 'small', 1, 50, 'down')"), -35);
    refused("LL003", "SELECT void_transfer(1, 'charge', 1, 0, 'never', 'a')");
    refused("LL003", "SELECT refund(1, 'charge', 1, 0, 66, 'all', 'a')");
    assert_int_equal(ask("SELECT refund(1, 'charge', 1, 0, NULL, 'all', 'a')"), 65);
    refused("LL003", "SELECT change_now(1, 1, 'less', 1, 10, 'less')");
    assert_int_equal(ask("SELECT change_now(1, 1, 'big', 1, 150, 'up')"), 70);
    assert_int_equal(
        ask("SELECT refund(1, 'proration', (SELECT proration_id FROM"
            " prorations WHERE idempotency_key = 'up'), 0, 20, 'late', 'b')"),
        20);
    world_is(50, "SELECT paid_for_period(1, 0, anchor_at) FROM subscriptions WHERE"
                 " subscription_id = 1");
    audit();
}

CASE(withdrawal_is_never_more_than_the_wallet)
{
    assert_int_equal(ask("SELECT withdraw(1, 'USD', 600, 'asked for', 'a')"), 90);
    assert_int_equal(ask("SELECT withdraw(1, 'USD', 600, 'asked for', 'a')"), 90);
    refused("LL001", "SELECT withdraw(1, 'USD', 601, 'asked for', 'a')");
    refused("LL003", "SELECT withdraw(1, 'USD', 91, 'asked for', 'b')");
    refused("LL002", "SELECT withdraw(1, 'EUR', 1, 'asked for', 'b')");
    refused("LL002", "SELECT withdraw(1, 'USD', -1, 'asked for', 'b')");
    audit();
    assert_int_equal(ask("SELECT withdraw(1, 'USD', 90, 'all', 'b')"), 0);
    world_do("SELECT cancel_subscription(1, 1, 'now')");
    world_runs(0, "run --once");
    world_do("SELECT close_account(1)");
    refused("LL003", "SELECT refund(1, 'charge', 1, 0, 30, 'late', 'c')");
    audit();
}

/* Guarantee: A period that is written off is owed no more, moves no money, and is never
 * charged. */
CASE(write_off_gives_up_the_declined_period)
{
    world_expect("past_due 0 1",
                 "SELECT concat_ws(' ', state, next_period_no, retries) FROM"
                 " subscriptions WHERE subscription_id = 2");
    refused("LL003", "SELECT write_off(2, 2, 1, 'gone', 'a')");
    assert_int_equal(ask("SELECT write_off(2, 2, 0, 'gone', 'a')"), 50);
    assert_int_equal(ask("SELECT write_off(2, 2, 0, 'gone', 'a')"), 50);
    refused("LL001", "SELECT write_off(2, 2, 1, 'gone', 'a')");
    world_expect("active 1 0",
                 "SELECT concat_ws(' ', state, next_period_no, retries) FROM"
                 " subscriptions WHERE subscription_id = 2");
    world_expect("written_off", "SELECT state FROM charges WHERE subscription_id = 2");
    refused("LL003", "SELECT write_off(2, 2, 1, 'gone', 'b')");
    refused("LL003", "SELECT write_off(1, 1, 1, 'gone', 'b')");
    refused("LL002", "SELECT write_off(1, 2, 0, 'gone', 'b')");
    world_do("SELECT deposit(2, 'USD', 1000, 'k')");
    world_runs(0, "run --once");
    world_is(1010, "SELECT balance_minor FROM users WHERE user_id = 2");
    audit();
}

/* Guarantee: Withdrawals and write-offs while a pool charges the same users leave every
 * wallet what its transfers say, and nobody is charged for a period that was given up.
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
    world_is(0, "SELECT count(*) FROM transfers JOIN write_offs ON source ="
                " subscription_id AND leg = period_no AND kind = 'charge'");
    assert_int_equal(world_ask("SELECT (SELECT max(recorded_at) FROM batches) > (SELECT"
                               " min(recorded_at) FROM corrections)"),
                     1);
    world_runs(0, "run --once");
    audit();
}

/* ---- units ---- */

/* Guarantee: Units that come back are on hand again and refunded at their price, never
 * more than were sold and never more than is left of the payment. */
CASE(units_come_back_and_are_refunded)
{
    assert_int_equal(ask("SELECT return_units(1, 1, 'A', 1, 'broken', 'a')"), 70);
    assert_int_equal(ask("SELECT return_units(1, 1, 'A', 1, 'broken', 'a')"), 70);
    world_is(8, "SELECT on_hand FROM stock");
    refused("LL003", "SELECT return_units(1, 1, 'A', 3, 'broken', 'b')");
    refused("LL001", "SELECT return_units(1, 1, 'A', 2, 'broken', 'a')");
    refused("LL002", "SELECT return_units(2, 1, 'A', 1, 'broken', 'b')");
    assert_int_equal(ask("SELECT refund(1, 'payment', 1, 0, 100, 'late', 'a')"), 100);
    assert_int_equal(ask("SELECT return_units(1, 1, 'A', 2, 'broken', 'b')"), 40);
    world_is(10, "SELECT on_hand FROM stock");
    wallet_is(900);
    refused("LL003", "SELECT refund(1, 'payment', 1, 0, 1, 'more', 'b')");
    audit();
}

/* Guarantee: Units that cost nothing, or whose money is back already, come back for
 * nothing. */
CASE(units_come_back_for_nothing)
{
    world_sku(2, "FREE", 5, 0);
    world_do("SELECT place_order(1, 'f', '[{\"sku\": \"FREE\", \"qty\": 2}]')");
    world_runs(0, "run --once");
    assert_int_equal(ask("SELECT return_units(1, 2, 'FREE', 1, 'broken', 'a')"), 0);
    assert_int_equal(ask("SELECT refund(1, 'payment', 1, 0, NULL, 'late', 'b')"), 210);
    assert_int_equal(ask("SELECT return_units(1, 1, 'A', 3, 'broken', 'b')"), 0);
    world_expect("10 4",
                 "SELECT string_agg(on_hand::text, ' ' ORDER BY sku) FROM stock");
    wallet_is(900);
    audit();
}

CASE(dearer_units_come_back_first)
{
    world_do("INSERT INTO order_lines (order_id, sku_id, unit_price_minor, qty) VALUES"
             " (1, 1, 90, 2)");
    assert_int_equal(ask("SELECT cost_of_units(1, 1, 0, 1)"), 90);
    assert_int_equal(ask("SELECT cost_of_units(1, 1, 1, 2)"), 90 + 70);
    assert_int_equal(ask("SELECT cost_of_units(1, 1, 0, 5)"), 2 * 90 + 3 * 70);
    assert_int_equal(ask("SELECT cost_of_units(1, 1, 4, 9)"), 70);
}

CASE(adjustment_counts_units_in_and_out)
{
    assert_int_equal(ask("SELECT adjust_stock('A', -2, 'broken', 'a')"), 5);
    assert_int_equal(ask("SELECT adjust_stock('A', -2, 'broken', 'a')"), 5);
    refused("LL001", "SELECT adjust_stock('A', 2, 'broken', 'a')");
    refused("LL003", "SELECT adjust_stock('A', -6, 'lost', 'b')");
    refused("LL002", "SELECT adjust_stock('A', 0, 'lost', 'b')");
    refused("LL002", "SELECT adjust_stock('B', 1, 'found', 'b')");
    refused("LL002", "SELECT adjust_stock('A', 9223372036854775807, 'found', 'b')");
    assert_int_equal(ask("SELECT adjust_stock('A', 4, 'found', 'b')"), 9);
    audit();
}

/* ---- orders ---- */

CASE(order_that_is_taken_back_is_never_served)
{
    world_do("SELECT place_order(1, 'l', '[{\"sku\": \"A\", \"qty\": 1}]')");
    assert_int_equal(ask("SELECT cancel_order(1, 2)::int"), 1);
    assert_int_equal(ask("SELECT cancel_order(1, 2)::int"), 0);
    refused("LL003", "SELECT cancel_order(1, 1)");
    refused("LL002", "SELECT cancel_order(2, 2)");
    refused("LL003", "SELECT return_units(1, 2, 'A', 1, 'mood', 'a')");
    world_runs(0, "run --once");
    world_expect("cancelled", "SELECT state FROM orders WHERE order_id = 2");
    wallet_is(690);
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
    world_is(late, "SELECT count(*) FROM stock_movements WHERE kind = 'sale' AND source"
                   " > 1");
    audit();
}
