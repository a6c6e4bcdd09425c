/* import: good files are in, once, whoever brings them. */
#include "tests/lib/import_world.h"
#include "tests/lib/session.h"

GROUP(.open = opened, .close = done);

CASE(import_of_orders_sums_lines_per_sku_and_price)
{
    import_orders(0, ORDERS "7,ann,A,2,2.50,2024-01-01T10:00:00Z\n"
                            "8,bob,B,1,1.00,2024-01-01T11:00:00Z\n"
                            "7,ann,A,3,2.50,2024-01-01T10:00:00Z\n"
                            "7,ann,A,1,2.00,2024-01-01T10:00:00Z\n"
                            "7,bob,\"C, large\",1,99.99,2024-01-02 00:00\n");
    shows("orders: 3 new, 0 already there");
    shows("4 lines, 8 units, 115.49 USD");
    assert_text(
        "SELECT string_agg(format('%s %s %s %s', external_ref, idempotency_key, "
        "total_minor, state), ', ' ORDER BY order_id) FROM orders JOIN users USING (user_id)",
        "ann 7 1450 pending, bob 8 100 pending, bob 7 9999 pending");
    assert_text(
        "SELECT string_agg(qty || 'x' || unit_price_minor, ' ' ORDER BY "
        "unit_price_minor) FROM order_lines JOIN orders USING (order_id) WHERE total_minor = 1450",
        "1x200 5x250");
}

CASE(import_of_unknown_skus_rejects_the_order_naming_all)
{
    import_orders(0, ORDERS "7,ann,Z,2,2.50,2024-01-01\n"
                            "7,ann,B,1,1.00,2024-01-01\n"
                            "7,ann,Y,1,1.00,2024-01-01\n"
                            "8,ann,B,1,1.00,2024-01-01\n");
    shows("1 of the new rejected for unknown SKUs");
    assert_text(
        "SELECT state || reason || skus::text || total_minor FROM orders WHERE idempotency_key = '7'",
        "rejectedunknown_sku{Y,Z}100");
    holds(&f, 1, "SELECT count(*) FROM orders WHERE state = 'pending'");
}

CASE(import_of_subscriptions_is_due_from_the_anchor)
{
    import_subscriptions(0,
                         SUBSCRIPTIONS "ann,gold,9.99,month,3,2024-01-31T12:00:00Z\n"
                                       "ann,gold,9.99,month,3,2024-02-01\n"
                                       "bob,\"day, by day\",0.01,day,1,2024-01-01\n");
    shows("subscriptions: 3 new, 0 already there");
    holds(
        &f, 3,
        "SELECT count(*) FROM subscriptions WHERE next_due_at = anchor_at AND next_period_no = 0 AND state = 'active'");
    assert_text(
        "SELECT format('%s %s %s %s', plan, amount_minor, unit, every) FROM subscriptions WHERE anchor_at = '2024-01-31T12:00:00Z'",
        "gold 999 month 3");
}

CASE(import_with_deposit_fills_new_wallets_once)
{
    write_file(orders, ORDERS "1,ann,A,1,2.50,2024-01-01\n2,bob,A,1,2.50,2024-01-01\n");
    for (int i = 0; i < 2; i++)
        runs(&f, 0, "import --orders %s --deposit 12.34 --now 2024-05-06T07:08:09Z",
             orders);
    holds(&f, 2, "SELECT count(*) FROM users WHERE balance_minor = 1234");
    holds(
        &f, 2,
        "SELECT count(*) FROM ledger WHERE kind = 'deposit' AND source = user_id AND amount_minor = 1234 AND currency = 'USD' AND moved_at = '2024-05-06T07:08:09Z'");
    holds(&f, 2, "SELECT count(*) FROM wallet_entries WHERE idempotency_key = ''");
    holds(&f, 2, "SELECT count(*) FROM ledger");
}

/* Guarantee: A file that is imported twice is in once. */
CASE(import_again_changes_nothing)
{
    static const char text[] =
        ORDERS "7,ann,A,2,2.50,2024-01-01\n7,ann,Z,1,1,2024-01-01\n"
               "8,ann,B,2,1.00,2024-01-01\n";

    import_orders(0, text);
    import_subscriptions(0, SUBSCRIPTIONS "ann,x,1,day,1,2024-01-01\n");
    import_orders(0, text);
    shows("stock: 0 SKUs new with 0 units, 3 already there");
    shows("orders: 0 new, 2 already there");
    import_subscriptions(0, SUBSCRIPTIONS "ann,x,1,day,1,2024-01-01\n");
    shows("subscriptions: 0 new, 1 already there");
    holds(&f, 2, "SELECT count(*) FROM order_lines");
}

CASE(import_reads_columns_by_name_crlf_bom_and_quotes)
{
    import_orders(
        0, "\xEF\xBB\xBF"
           "sku,placed_at,order_ref,\"quantity\",customer_ref,unit_price\r\n"
           "\"C, large\",2024-01-01,\"say \"\"7\"\"\",2,J\xC3\xBCrgen,99.99\r\n");
    assert_text(
        "SELECT external_ref || idempotency_key || total_minor FROM orders JOIN users USING (user_id)",
        "J\xC3\xBCrgensay \"7\"19998");
}

/* Guarantee: A file that several import at once is in once. */
CASE(imports_at_once_import_once)
{
    struct fixture_child children[4];
    PGconn *holder = session_open(f.url);

    session_do(holder,
               "BEGIN; LOCK TABLE orders IN SHARE MODE"); /* the first stops here */
    write_file(orders, ORDERS "7,ann,A,2,2.50,2024-01-01\n8,bob,B,1,1.00,2024-01-01\n");
    for (int i = 0; i < 4; i++)
        fixture_spawn(&f, &children[i], "import", "--stock", stock, "--orders", orders,
                      "--deposit", "5", NULL);
    FIXTURE_AWAIT(
        fixture_query_int8(
            f.url,
            "SELECT count(*) FROM pg_locks WHERE NOT granted"
            " AND locktype = 'advisory' AND database ="
            " (SELECT oid FROM pg_database WHERE datname = current_database())") == 3,
        "three do not wait for the first");
    PQfinish(holder);
    for (int i = 0; i < 4; i++)
        assert_int_equal(fixture_wait(&children[i], 30, NULL), 0);
    holds(&f, 2, "SELECT count(*) FROM orders");
    holds(&f, 1000, "SELECT sum(amount_minor)::int8 FROM ledger");
}
