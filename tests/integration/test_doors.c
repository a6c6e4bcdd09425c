/* doors: the functions that clients call, as the client role calls them. */
#include <stdio.h>
#include <string.h>

#include "tests/lib/fixture.h"

static struct fixture f;
static char client[FIXTURE_URL];

static int open_shop(void **state)
{
    (void)state;
    fixture_open_migrated(&f);
    fixture_url_as(&f, "ledgerlock_client", client, sizeof client);
    fixture_exec(
        f.url,
        "INSERT INTO ledgerlock.users (user_id, currency) VALUES (1, 'USD'), "
        "(2, 'USD'), (3, 'EUR'); INSERT INTO ledgerlock.stock (sku_id, sku, "
        "initial_qty, on_hand, unit_price_minor, currency) VALUES (65, 'A', 10, "
        "10, 250, 'USD'), (70, 'B', 5, 5, 100, 'USD'); INSERT INTO "
        "ledgerlock.subscriptions (subscription_id, user_id, plan, amount_minor, "
        "currency, anchor_at, unit, next_period_no, next_due_at) VALUES (1, 1, "
        "'p', 100, 'USD', '2024-01-31Z', 'month', 1, '2024-02-29Z')");
    return 0;
}

static int close_shop(void **state)
{
    (void)state;
    fixture_close(&f);
    return 0;
}

static int64_t call(const char *sql)
{
    return fixture_query_int8(client, sql);
}

static int64_t ask(const char *sql)
{
    return fixture_query_int8(f.url, sql);
}

static void assert_refused(const char *sql, const char *expected)
{
    char code[6];

    assert_string_equal(fixture_sqlstate(client, sql, code), expected);
}

#define PLACE(user, key, lines)                                                        \
    "SELECT ledgerlock.place_order(" user ", '" key "', '" lines "')"

/* ---- place_order ---- */

static void order_with_same_key_and_lines_is_the_same_order(void **state)
{
    int64_t id = call(PLACE("1", "k", "[{\"sku\": \"A\", \"qty\": 2}]"));

    (void)state;
    assert_int_equal(call(PLACE("1", "k", "[{\"qty\": 2,  \"sku\": \"A\"}]")), id);
    assert_int_equal(ask("SELECT count(*) FROM ledgerlock.orders"), 1);
    assert_int_equal(ask("SELECT sum(qty) FROM ledgerlock.order_lines"), 2);
    assert_int_equal(ask("SELECT total_minor FROM ledgerlock.orders"), 500);
    assert_int_equal(ask("SELECT bucket FROM ledgerlock.orders"), 1);
}

static void order_with_same_key_and_other_lines_is_refused(void **state)
{
    (void)state;
    (void)call(PLACE("1", "k", "[{\"sku\": \"A\", \"qty\": 2}]"));
    assert_refused(PLACE("1", "k", "[{\"sku\": \"A\", \"qty\": 3}]"), "LL001");
    assert_int_equal(ask("SELECT sum(qty) FROM ledgerlock.order_lines"), 2);
}

static void order_with_key_of_another_user_is_another_order(void **state)
{
    int64_t id = call(PLACE("1", "k", "[{\"sku\": \"A\", \"qty\": 2}]"));

    (void)state;
    assert_int_not_equal(call(PLACE("2", "k", "[{\"sku\": \"B\", \"qty\": 1}]")), id);
    assert_int_equal(ask("SELECT count(*) FROM ledgerlock.orders"), 2);
}

static void order_of_unknown_skus_is_rejected_naming_them(void **state)
{
    char skus[64];

    (void)state;
    (void)call(PLACE("1", "k",
                     "[{\"sku\": \"Z\", \"qty\": 1}, {\"sku\": \"A\", \"qty\": 1}, "
                     "{\"sku\": \"Y\", \"qty\": 1}]"));
    fixture_query_text(
        f.url,
        "SELECT skus::text FROM ledgerlock.orders WHERE state = 'rejected' "
        "AND reason = 'unknown_sku'",
        skus, sizeof skus);
    assert_string_equal(skus, "{Y,Z}");
}

static void order_with_sku_twice_has_its_quantities_summed(void **state)
{
    (void)state;
    (void)call(PLACE("1", "k",
                     "[{\"sku\": \"A\", \"qty\": 2}, {\"sku\": \"B\", \"qty\": 1}, "
                     "{\"sku\": \"A\", \"qty\": 3}]"));
    assert_int_equal(ask("SELECT count(*) FROM ledgerlock.order_lines"), 2);
    assert_int_equal(ask("SELECT qty FROM ledgerlock.order_lines WHERE sku_id = 65"),
                     5);
    assert_int_equal(ask("SELECT total_minor FROM ledgerlock.orders"), 1350);
}

static void order_that_is_malformed_is_refused(void **state)
{
    (void)state;
    assert_refused(PLACE("1", "k", "[]"), "LL002");
    assert_refused(PLACE("1", "k", "{}"), "LL002");
    assert_refused(PLACE("1", "", "[{\"sku\": \"A\", \"qty\": 2}]"), "LL002");
    assert_refused(PLACE("1", "k", "[{\"sku\": \"A\", \"qty\": 0}]"), "LL002");
    assert_refused(PLACE("1", "k", "[{\"sku\": \"A\", \"qty\": 1.5}]"), "LL002");
    assert_refused(PLACE("1", "k", "[{\"sku\": \"A\", \"qty\": -1}]"), "LL002");
    assert_refused(PLACE("1", "k", "[{\"sku\": 7, \"qty\": 1}]"), "LL002");
    assert_refused(PLACE("9", "k", "[{\"sku\": \"A\", \"qty\": 1}]"), "LL002");
    assert_refused(PLACE("3", "k", "[{\"sku\": \"A\", \"qty\": 1}]"), "LL002");
    assert_int_equal(ask("SELECT count(*) FROM ledgerlock.orders"), 0);
}

static void order_placed_moves_neither_stock_nor_money(void **state)
{
    (void)state;
    (void)call(PLACE("1", "k", "[{\"sku\": \"A\", \"qty\": 2}]"));
    assert_int_equal(ask("SELECT on_hand FROM ledgerlock.stock WHERE sku = 'A'"), 10);
    assert_int_equal(ask("SELECT count(*) FROM ledgerlock.transfers"), 0);
}

static void order_lines_that_are_null_are_refused(void **state)
{
    (void)state;
    assert_refused("SELECT ledgerlock.place_order(1, 'k', NULL)", "LL002");
    assert_refused(
        "SELECT ledgerlock.place_order(1, NULL, '[{\"sku\":\"A\",\"qty\":1}]')",
        "LL002");
    assert_refused("SELECT ledgerlock.place_order(1, 'k', '[1]')", "LL002");
    assert_refused("SELECT ledgerlock.place_order(1, 'k', '[{\"sku\":\"A\"}]')",
                   "LL002");
}

/* ---- the others ---- */

static void deposit_with_same_number_counts_once(void **state)
{
    (void)state;
    assert_int_equal(call("SELECT ledgerlock.deposit(1, 7, 100)"), 100);
    assert_int_equal(call("SELECT ledgerlock.deposit(1, 7, 100)"), 100);
    assert_int_equal(call("SELECT ledgerlock.deposit(1, 8, 50)"), 150);
    assert_int_equal(call("SELECT ledgerlock.deposit(2, 7, 30)"), 30);
    assert_int_equal(ask("SELECT count(*) FROM ledgerlock.transfers"), 3);
}

static void deposit_with_same_number_and_other_amount_is_refused(void **state)
{
    (void)state;
    (void)call("SELECT ledgerlock.deposit(1, 7, 100)");
    assert_refused("SELECT ledgerlock.deposit(1, 7, 101)", "LL001");
    assert_refused("SELECT ledgerlock.deposit(1, 9, 0)", "LL002");
    assert_refused("SELECT ledgerlock.deposit(1, 9, -5)", "LL002");
    assert_refused("SELECT ledgerlock.deposit(9, 9, 5)", "LL002");
    assert_int_equal(ask("SELECT sum(balance_minor) FROM ledgerlock.users"), 100);
}

static void order_of_a_thousand_skus_is_refused_at_the_door(void **state)
{
    (void)state;
    assert_refused("SELECT ledgerlock.place_order(1, 'big', (SELECT jsonb_agg("
                   "jsonb_build_object('sku', 'N' || n, 'qty', 1)) FROM "
                   "generate_series(1, 1000) AS n))",
                   "LL002");
}

static void order_status_tells_its_own_user_only(void **state)
{
    (void)state;
    assert_int_equal(call("SELECT ledgerlock.place_order(1, 'status', "
                          "'[{\"sku\": \"nowhere\", \"qty\": 1}]') > 0"),
                     1);
    assert_int_equal(
        call("SELECT state = 'rejected' AND reason = 'unknown_sku' FROM "
             "ledgerlock.order_status(1, ledgerlock.place_order(1, 'status', "
             "'[{\"sku\": \"nowhere\", \"qty\": 1}]'))"),
        1);
    assert_int_equal(
        call("SELECT count(*) FROM ledgerlock.order_status(2, "
             "ledgerlock.place_order(1, 'status', '[{\"sku\": \"nowhere\", "
             "\"qty\": 1}]'))"),
        0);
}

static void cancel_stops_after_the_period_that_is_running(void **state)
{
    const char *cancel =
        "SELECT ledgerlock.cancel_subscription(1, '2024-02-10Z') = '2024-02-29Z'";

    (void)state;
    assert_int_equal(call(cancel), 1);
    assert_int_equal(call(cancel), 1);
    assert_refused("SELECT ledgerlock.cancel_subscription(9)", "LL002");
}

static void resume_gives_an_unpaid_subscription_one_more_try(void **state)
{
    (void)state;
    assert_int_equal(call("SELECT ledgerlock.resume_subscription(1)"), 0);
    fixture_exec(f.url,
                 "UPDATE ledgerlock.subscriptions SET state = 'unpaid', retries = 4");
    assert_int_equal(call("SELECT ledgerlock.resume_subscription(1, '2024-05-01Z')"),
                     1);
    assert_int_equal(
        ask("SELECT state = 'past_due' AND next_due_at = '2024-05-01Z' FROM "
            "ledgerlock.subscriptions"),
        1);
}

static void delivery_with_same_number_arrives_once(void **state)
{
    (void)state;
    assert_int_equal(call("SELECT ledgerlock.receive_stock('A', 1, 5)"), 15);
    assert_int_equal(call("SELECT ledgerlock.receive_stock('A', 1, 5)"), 15);
    assert_int_equal(call("SELECT ledgerlock.receive_stock('B', 1, 5)"), 10);
    assert_refused("SELECT ledgerlock.receive_stock('A', 1, 6)", "LL001");
    assert_refused("SELECT ledgerlock.receive_stock('A', 2, 0)", "LL002");
    assert_refused("SELECT ledgerlock.receive_stock('Z', 1, 5)", "LL002");
    assert_int_equal(ask("SELECT bool_and(on_hand = initial_qty + 5)::int FROM "
                         "ledgerlock.stock"),
                     1);
}

static void currency_is_three_capital_letters_wherever_it_is_kept(void **state)
{
    static const char *const refused[] = {"usd", "US", "USDT", "U$D", ""};
    char sql[160], code[6];

    (void)state;
    for (size_t i = 0; i < 2 * sizeof refused / sizeof refused[0]; i++) {
        (void)snprintf(sql, sizeof sql, "UPDATE ledgerlock.%s SET currency = '%s'",
                       i % 2 == 0 ? "users" : "stock", refused[i / 2]);
        assert_string_equal(fixture_sqlstate(f.url, sql, code), "23514");
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_shop, close_shop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(order_with_same_key_and_lines_is_the_same_order),
        TEST(order_with_same_key_and_other_lines_is_refused),
        TEST(order_with_key_of_another_user_is_another_order),
        TEST(order_of_unknown_skus_is_rejected_naming_them),
        TEST(order_with_sku_twice_has_its_quantities_summed),
        TEST(order_that_is_malformed_is_refused),
        TEST(order_placed_moves_neither_stock_nor_money),
        TEST(order_lines_that_are_null_are_refused),
        TEST(deposit_with_same_number_counts_once),
        TEST(deposit_with_same_number_and_other_amount_is_refused),
        TEST(order_of_a_thousand_skus_is_refused_at_the_door),
        TEST(order_status_tells_its_own_user_only),
        TEST(cancel_stops_after_the_period_that_is_running),
        TEST(resume_gives_an_unpaid_subscription_one_more_try),
        TEST(delivery_with_same_number_arrives_once),
        TEST(currency_is_three_capital_letters_wherever_it_is_kept),
    };

    fixture_need_servers();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
