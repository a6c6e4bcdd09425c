/* The control of test_exactly_once and of every fault test: the same comparisons over
 * rows that are right, and then over rows that were spoilt after the run, one by one in
 * a transaction that is rolled back. Each must be found by the comparison that is there
 * for it, so none of them can be one that never fails. */
#include "tests/lib/meet.h"
#include "tests/lib/session.h"
#include "tests/lib/steps.h"

static PGconn *conn;

typedef const char *(*compare_fn)(PGconn *);

static void work_undisturbed(void)
{
    static const struct load_size size = {
        .users = 60, .subscriptions = 90, .orders = 200, .periods = 3};
    static const struct world_plan plan = {.load = &size, .any = true};

    world_open_as(&plan);
    meet_begin();
    pool_start("run -w 4");
    load_clients_start(200);
    load_clients_finish();
    pool_stop();
    meet_assert_both();
    load_assert_exact();
    fixture_unguard(&world.f); /* it would refuse the spoilt rows */
    conn = load_connect();
}

static void close_all(void)
{
    PQfinish(conn);
    world_close();
}

GROUP(.start = work_undisturbed, .stop = close_all);

/* `of`: the comparison that must find it; the row that is spoilt must be there. */
static void assert_found(compare_fn of, const char *spoil)
{
    char all[1024];
    const char *found;
    PGresult *res;

    session_do(conn, "BEGIN");
    (void)snprintf(all, sizeof all, "%s RETURNING 1", spoil);
    res = session_ask(conn, all);
    if (PQntuples(res) == 0)
        fail_msg("%s: nothing was spoilt", spoil);
    PQclear(res);
    found = of(conn);
    if (found == NULL)
        fail_msg("not found: %s", spoil);
    print_message("%s\n", found);
    session_do(conn, "ROLLBACK");
    assert_null(of(conn));
}

#define FULFILLED "(SELECT min(order_id) FROM orders WHERE state = 'fulfilled')"

struct spoil {
    const char *name;
    compare_fn of; /* the comparison that must find it */
    const char *sql[14];
};

static const struct spoil spoils[] = {
    {"charges",
     load_wrong_charges,
     {"INSERT INTO charges SELECT * FROM (SELECT * FROM charges WHERE state ="
      " 'captured' LIMIT 1) AS c",
      "DELETE FROM charges WHERE state = 'captured'",
      "DELETE FROM charges WHERE (subscription_id, period_no) = (SELECT"
      " subscription_id, max(period_no) FROM charges WHERE state = 'captured' GROUP"
      " BY 1 HAVING count(*) > 1 LIMIT 1)",
      "UPDATE charges SET period_no = period_no + 1 WHERE (subscription_id,"
      " period_no) = (SELECT subscription_id, max(period_no) FROM charges WHERE state"
      " = 'captured' GROUP BY 1 LIMIT 1)",
      "UPDATE charges SET amount_minor = amount_minor + 1 WHERE state = 'captured'",
      "UPDATE charges SET user_id = user_id + 1 WHERE state = 'declined'",
      "UPDATE charges SET user_id = user_id + 1 WHERE state = 'captured'",
      "UPDATE charges SET subscription_id = subscription_id + 1 WHERE state ="
      " 'captured'",
      "UPDATE charges SET state = 'waived' WHERE state = 'captured'",
      "UPDATE subscriptions SET cancel_at = cancel_at + interval '1 second' WHERE"
      " cancel_at IS NOT NULL",
      "UPDATE subscriptions SET cancel_at = NULL WHERE cancel_at IS NOT NULL",
      "UPDATE charges SET state = 'captured' WHERE state = 'declined'"}},
    {"declines",
     load_wrong_declines,
     {/* one that was not true: the user could have paid */
      "UPDATE charges SET state = 'declined' WHERE (subscription_id, period_no) ="
      " (SELECT subscription_id, max(period_no) FROM charges WHERE state = 'captured'"
      " GROUP BY 1 LIMIT 1)",
      "DELETE FROM charges WHERE state = 'declined'",
      "UPDATE charges SET tries = tries - 1 WHERE state = 'declined'",
      "UPDATE charges SET amount_minor = 1 WHERE state = 'declined'",
      "UPDATE charges SET period_no = period_no + 1 WHERE state = 'declined'"}},
    {"subscriptions",
     load_wrong_subscriptions,
     {"UPDATE subscriptions SET next_period_no = next_period_no + 1",
      "UPDATE subscriptions SET next_due_at = now() WHERE state = 'active'",
      "UPDATE subscriptions SET state = 'past_due' WHERE state = 'unpaid'",
      "UPDATE subscriptions SET state = 'active' WHERE state = 'cancelled'",
      "UPDATE subscriptions SET retries = 0 WHERE state = 'unpaid'",
      "DELETE FROM subscriptions WHERE subscription_id = 1"}},
    {"stock",
     load_wrong_stock,
     {"UPDATE stock SET on_hand = on_hand + 1 WHERE sku = 'sku-7'",
      "UPDATE stock SET on_hand = 1 WHERE sku = 'sku-1'",
      "INSERT INTO order_lines SELECT l.* FROM order_lines AS l JOIN orders USING"
      " (order_id) WHERE state = 'fulfilled' LIMIT 1",
      "INSERT INTO stock_entries OVERRIDING SYSTEM VALUE SELECT * FROM stock_entries LIMIT"
      " 1",
      "DELETE FROM stock_entries",
      "DELETE FROM order_lines WHERE order_id = " FULFILLED,
      "UPDATE order_lines SET qty = qty + 1 WHERE order_id = " FULFILLED,
      "UPDATE orders SET state = 'pending' WHERE order_id = " FULFILLED}},
    {"orders",
     load_wrong_orders,
     {"UPDATE orders SET state = 'pending', reason = NULL WHERE reason ="
      " 'insufficient_funds'",
      "UPDATE orders SET state = 'rejected', reason = 'insufficient_funds' WHERE"
      " order_id = " FULFILLED,
      "UPDATE orders SET state = 'fulfilled', reason = NULL WHERE reason ="
      " 'insufficient_funds'",
      "UPDATE orders SET skus = '{sku-9}' WHERE reason = 'out_of_stock'",
      "UPDATE orders SET total_minor = total_minor + 1",
      "DELETE FROM orders WHERE order_id = (SELECT max(order_id) FROM orders)",
      "UPDATE orders SET user_id = user_id + 1 WHERE order_id = " FULFILLED,
      "INSERT INTO order_lines SELECT * FROM order_lines LIMIT 1",
      "DELETE FROM order_lines WHERE order_id = " FULFILLED,
      /* neither of two, where there was money for one (every tenth user) */
      "UPDATE orders SET state = 'rejected', reason = 'insufficient_funds' WHERE"
      " user_id % 10 = 4 AND state = 'fulfilled'",
      "UPDATE order_lines SET qty = qty + 1 WHERE order_id = " FULFILLED,
      "UPDATE order_lines SET unit_price_minor = unit_price_minor + 1"}},
    {"wallets",
     load_wrong_wallets,
     {"UPDATE users SET balance_minor = balance_minor + 1 WHERE user_id = 7",
      "UPDATE users SET balance_minor = 0 WHERE user_id = 2",
      "UPDATE wallet_entries SET amount_minor = amount_minor + 1 WHERE user_id = 7",
      "UPDATE wallet_entries SET user_id = 8 WHERE user_id = 7",
      "DELETE FROM wallet_entries WHERE user_id = 7",
      "INSERT INTO wallet_entries OVERRIDING SYSTEM VALUE SELECT * FROM wallet_entries WHERE user_id = 7",
      "UPDATE orders SET state = 'rejected' WHERE order_id = " FULFILLED}},
};

/* Guarantee: The assertions of the exactly-once test fail when its charges, declines,
 * subscriptions, stock, orders or wallets are spoilt. */
CASE_ROWS(spoilt_rows_are_found_in, spoils)
{
    for (size_t i = 0; row->sql[i] != NULL; i++)
        assert_found(row->of, row->sql[i]);
}
