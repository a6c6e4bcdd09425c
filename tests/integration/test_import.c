/* import: good files are in, once; bad lines are told and nothing is half imported. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/lib/fixture.h"

#define ORDERS "order_ref,customer_ref,sku,quantity,unit_price,placed_at\n"
#define SUBSCRIPTIONS "customer_ref,plan,amount,unit,every,anchor_at\n"
#define STOCK "sku,quantity,unit_price\n"
#define THREE_SKUS STOCK "A,10,2.50\nB,5,1.00\n\"C, large\",0,99.99\n"
#define L "ledgerlock."

static struct fixture f;
static struct fixture_output o;
static char orders[128], subscriptions[128], stock[128], rejects[140];

static int opened(void **state)
{
    (void)state;
    fixture_open_migrated(&f);
    fixture_file(stock, sizeof stock, THREE_SKUS, 0600);
    orders[0] = subscriptions[0] = '\0';
    (void)snprintf(rejects, sizeof rejects, "%s.rejects", stock);
    return 0;
}

static int done(void **state)
{
    (void)state;
    (void)unlink(stock);
    (void)unlink(rejects);
    (void)unlink(orders);
    (void)unlink(subscriptions);
    fixture_close(&f);
    return 0;
}

static void write_file(char path[128], const char *text)
{
    (void)unlink(path);
    fixture_file(path, 128, text, 0600);
}

static int import_orders(const char *text)
{
    write_file(orders, text);
    return fixture_run(&f, &o, "import", "--stock", stock, "--orders", orders, NULL);
}

static int import_subscriptions(const char *text)
{
    write_file(subscriptions, text);
    return fixture_run(&f, &o, "import", "--subscriptions", subscriptions, NULL);
}

static void assert_query(const char *sql, int64_t expected)
{
    assert_int_equal(fixture_query_int8(f.url, sql), expected);
}

static void assert_text(const char *sql, const char *expected)
{
    char got[512];

    fixture_query_text(f.url, sql, got, sizeof got);
    assert_string_equal(got, expected);
}

static void assert_empty(void)
{
    assert_query("SELECT (SELECT count(*) FROM " L "users) + (SELECT count(*) FROM " L
                 "stock) + (SELECT count(*) FROM " L
                 "orders) + (SELECT count(*) FROM " L
                 "subscriptions) + (SELECT count(*) FROM " L "transfers)",
                 0);
}

/* The file with this one bad line is refused with this reason. */
static void assert_bad_order(const char *line, const char *reason)
{
    char text[1024], told[512];

    (void)snprintf(text, sizeof text, ORDERS "1,u,A,1,2.50,2024-01-01\n%s\n", line);
    assert_int_equal(import_orders(text), 2);
    (void)snprintf(told, sizeof told, "%s:3: %s\n", orders, reason);
    fixture_assert_contains(o.err, told);
    fixture_assert_contains(o.err, "1 bad line, so nothing was imported");
    assert_string_equal(o.out, "");
    assert_empty();
}

/* ---- good files
 * ---------------------------------------------------------------------- */

static void import_of_orders_sums_lines_per_sku_and_price(void **state)
{
    (void)state;
    assert_int_equal(import_orders(ORDERS
                                   "7,ann,A,2,2.50,2024-01-01T10:00:00Z\n"
                                   "8,bob,B,1,1.00,2024-01-01T11:00:00Z\n"
                                   "7,ann,A,3,2.50,2024-01-01T10:00:00Z\n"
                                   "7,ann,A,1,2.00,2024-01-01T10:00:00Z\n"
                                   "7,bob,\"C, large\",1,99.99,2024-01-02 00:00\n"),
                     0);
    fixture_assert_contains(o.out, "orders: 3 new, 0 already there");
    fixture_assert_contains(o.out, "4 lines, 8 units, 115.49 USD");
    assert_text(
        "SELECT string_agg(format('%s %s %s %s', external_ref, idempotency_key, "
        "total_minor, state), ', ' ORDER BY order_id) FROM " L "orders JOIN " L
        "users USING (user_id)",
        "ann 7 1450 pending, bob 8 100 pending, bob 7 9999 pending");
    assert_text("SELECT string_agg(qty || 'x' || unit_price_minor, ' ' ORDER BY "
                "unit_price_minor) FROM " L "order_lines JOIN " L
                "orders USING (order_id) WHERE total_minor = 1450",
                "1x200 5x250");
    assert_query("SELECT count(*) FROM " L
                 "orders WHERE bucket <> (SELECT min(sku_id) % 64 "
                 "FROM " L "order_lines l WHERE l.order_id = orders.order_id)",
                 0);
}

static void import_of_unknown_skus_rejects_the_order_naming_all(void **state)
{
    (void)state;
    assert_int_equal(import_orders(ORDERS "7,ann,Z,2,2.50,2024-01-01\n"
                                          "7,ann,B,1,1.00,2024-01-01\n"
                                          "7,ann,Y,1,1.00,2024-01-01\n"
                                          "8,ann,B,1,1.00,2024-01-01\n"),
                     0);
    fixture_assert_contains(o.out, "1 of the new rejected for unknown SKUs");
    assert_text("SELECT state || reason || skus::text || total_minor FROM " L
                "orders WHERE idempotency_key = '7'",
                "rejectedunknown_sku{Y,Z}100");
    assert_query("SELECT count(*) FROM " L "orders WHERE state = 'pending'", 1);
}

static void import_of_subscriptions_is_due_from_the_anchor(void **state)
{
    (void)state;
    assert_int_equal(import_subscriptions(
                         SUBSCRIPTIONS "ann,gold,9.99,month,3,2024-01-31T12:00:00Z\n"
                                       "ann,gold,9.99,month,3,2024-02-01\n"
                                       "bob,\"day, by day\",0.01,day,1,2024-01-01\n"),
                     0);
    fixture_assert_contains(o.out, "subscriptions: 3 new, 0 already there");
    assert_query("SELECT count(*) FROM " L
                 "subscriptions WHERE next_due_at = anchor_at AND "
                 "next_period_no = 0 AND state = 'active'",
                 3);
    assert_text("SELECT format('%s %s %s %s', plan, amount_minor, unit, every) FROM " L
                "subscriptions WHERE anchor_at = '2024-01-31T12:00:00Z'",
                "gold 999 month 3");
}

static void import_with_deposit_fills_new_wallets_once(void **state)
{
    (void)state;
    write_file(orders, ORDERS "1,ann,A,1,2.50,2024-01-01\n2,bob,A,1,2.50,2024-01-01\n");
    for (int i = 0; i < 2; i++)
        assert_int_equal(fixture_run(&f, &o, "import", "--orders", orders, "--deposit",
                                     "12.34", "--now", "2024-05-06T07:08:09Z", NULL),
                         0);
    assert_query("SELECT count(*) FROM " L "users WHERE balance_minor = 1234", 2);
    assert_query("SELECT count(*) FROM " L
                 "transfers WHERE kind = 'deposit' AND leg = 0 AND "
                 "source = user_id AND amount_minor = 1234 AND currency = 'USD' AND "
                 "moved_at = '2024-05-06T07:08:09Z'",
                 2);
    assert_query("SELECT count(*) FROM " L "transfers", 2);
}

static void import_again_changes_nothing(void **state)
{
    static const char text[] =
        ORDERS "7,ann,A,2,2.50,2024-01-01\n7,ann,Z,1,1,2024-01-01\n"
               "8,ann,B,2,1.00,2024-01-01\n";

    (void)state;
    assert_int_equal(import_orders(text), 0);
    assert_int_equal(import_subscriptions(SUBSCRIPTIONS "ann,x,1,day,1,2024-01-01\n"),
                     0);
    assert_int_equal(import_orders(text), 0);
    fixture_assert_contains(o.out, "stock: 0 SKUs new with 0 units, 3 already there");
    fixture_assert_contains(o.out, "orders: 0 new, 2 already there");
    assert_int_equal(import_subscriptions(SUBSCRIPTIONS "ann,x,1,day,1,2024-01-01\n"),
                     0);
    fixture_assert_contains(o.out, "subscriptions: 0 new, 1 already there");
    assert_query("SELECT count(*) FROM " L "order_lines", 2);
}

static void import_reads_columns_by_name_crlf_bom_and_quotes(void **state)
{
    (void)state;
    assert_int_equal(
        import_orders(
            "\xEF\xBB\xBF"
            "sku,placed_at,order_ref,\"quantity\",customer_ref,unit_price\r\n"
            "\"C, large\",2024-01-01,\"say \"\"7\"\"\",2,J\xC3\xBCrgen,99.99\r\n"),
        0);
    assert_text("SELECT external_ref || idempotency_key || total_minor FROM " L
                "orders JOIN " L "users USING (user_id)",
                "J\xC3\xBCrgensay \"7\"19998");
}

static void imports_at_once_import_once(void **state)
{
    struct fixture_child children[4];

    (void)state;
    write_file(orders, ORDERS "7,ann,A,2,2.50,2024-01-01\n8,bob,B,1,1.00,2024-01-01\n");
    for (int i = 0; i < 4; i++)
        fixture_spawn(&f, &children[i], "import", "--stock", stock, "--orders", orders,
                      "--deposit", "5", NULL);
    for (int i = 0; i < 4; i++)
        assert_int_equal(fixture_wait(&children[i], 30, NULL), 0);
    assert_query("SELECT count(*) FROM " L "orders", 2);
    assert_query("SELECT sum(amount_minor)::int8 FROM " L "transfers", 1000);
}

/* ---- bad lines
 * ----------------------------------------------------------------------- */

static void import_of_bad_order_lines_tells_file_line_and_reason(void **state)
{
    (void)state;
    assert_bad_order("1,u,A,1,2.50", "the line has 5 fields, not 6");
    assert_bad_order("1", "the line has 1 field, not 6");
    assert_bad_order("1,,A,1,2.50,2024-01-01", "customer_ref is empty");
    assert_bad_order("1,  ,A,1,2.50,2024-01-01", "customer_ref is empty");
    assert_bad_order(",u,A,1,2.50,2024-01-01", "order_ref is empty");
    assert_bad_order("1,u,,1,2.50,2024-01-01", "sku is empty");
    assert_bad_order("1,u,A,0,2.50,2024-01-01", "quantity is zero");
    assert_bad_order("1,u,A,-3,2.50,2024-01-01", "quantity is negative");
    assert_bad_order("1,u,A,1.5,2.50,2024-01-01", "quantity is not a whole number");
    assert_bad_order("1,u,A,,2.50,2024-01-01", "quantity is not a whole number");
    assert_bad_order("1,u,A,99999999999999999999,2.50,2024-01-01",
                     "quantity is too large");
    assert_bad_order("1,u,A,1,0.00,2024-01-01", "unit_price is zero");
    assert_bad_order("1,u,A,1,-2.50,2024-01-01", "unit_price is negative");
    assert_bad_order("1,u,A,1,2.505,2024-01-01",
                     "unit_price has more decimals than USD (2)");
    assert_bad_order("1,u,A,1,two,2024-01-01",
                     "unit_price is not an amount like 12.34");
    assert_bad_order("1,u,A,1000000000,1000000,2024-01-01",
                     "quantity times unit_price is too large");
    assert_bad_order("1,u,A,1,2.50,01/12/2010 08:26",
                     "placed_at is not a time like 2010-12-01T08:26:00Z");
    assert_bad_order("1,\"u,A,1,2.50,2024-01-01",
                     "the line has a quote that is not closed");
    assert_bad_order("1,caf\xE9,A,1,2.50,2024-01-01", "the line is not UTF-8 text");
}

static void import_of_bad_subscription_lines_tells_the_reason(void **state)
{
    static const struct {
        const char *line, *reason;
    } cases[] = {
        {"u,p,0,month,1,2024-01-01", "amount is zero"},
        {"u,p,-1,month,1,2024-01-01", "amount is negative"},
        {"u,p,1,fortnight,1,2024-01-01", "unit is not day, week, month or year"},
        {"u,p,1,month,0,2024-01-01", "every is zero"},
        {"u,p,1,month,1001,2024-01-01", "every is too large"},
        {"u,,1,month,1,2024-01-01", "plan is empty"},
        {"u,p,1,month,1,2023-02-29", "anchor_at is not a time"},
    };

    char text[256];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        (void)snprintf(text, sizeof text, SUBSCRIPTIONS "%s\n", cases[i].line);
        assert_int_equal(import_subscriptions(text), 2);
        fixture_assert_contains(o.err, cases[i].reason);
    }
    assert_empty();
}

static void import_with_rejects_keeps_bad_lines_and_takes_the_others(void **state)
{
    char text[1024] = "";
    FILE *file;

    (void)state;
    write_file(orders, ORDERS "1,u,A,1,2.50,2024-01-01\n2,u,A,-1,2.50,2024-01-01\r\n"
                              "3,\"x, y\",B,1,0,2024-01-01\n4,u,torn");
    assert_int_equal(fixture_run(&f, &o, "import", "--stock", stock, "--orders", orders,
                                 "--rejects", rejects, NULL),
                     0);
    fixture_assert_contains(o.out, "bad lines: 3, put aside in ");
    assert_query("SELECT count(*) FROM " L "orders", 1);
    file = fopen(rejects, "r");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    (void)fclose(file);
    assert_string_equal(
        text, "order_ref,customer_ref,sku,quantity,unit_price,placed_at,rejected\n"
              "2,u,A,-1,2.50,2024-01-01,\"quantity is negative\"\n"
              "3,\"x, y\",B,1,0,2024-01-01,\"unit_price is zero\"\n"
              "4,u,torn,\"the line has 3 fields, not 6\"\n");
}

static void import_of_corrected_rejects_works(void **state)
{
    (void)state;
    assert_int_equal(
        import_orders(
            "order_ref,customer_ref,sku,quantity,unit_price,placed_at,rejected\n"
            "2,u,A,1,2.50,2024-01-01,\"quantity is negative\"\n"),
        0);
    assert_query("SELECT count(*) FROM " L "orders", 1);
}

static void import_of_same_order_with_other_lines_is_refused(void **state)
{
    (void)state;
    assert_int_equal(import_orders(ORDERS "7,ann,A,2,2.50,2024-01-01\n"), 0);
    assert_int_equal(import_orders(ORDERS "6,ann,A,2,2.50,2024-01-01\n"
                                          "7,ann,A,3,2.50,2024-01-01\n"),
                     2);
    fixture_assert_contains(o.err,
                            ":3: order \"7\" of customer \"ann\" is already there "
                            "with other lines\n");
    assert_query("SELECT count(*) FROM " L "orders", 1);
}

static void import_of_contradictions_is_refused(void **state)
{
    (void)state;
    assert_int_equal(import_orders(ORDERS), 0);
    write_file(stock, STOCK "A,10,2.50\nA,11,2.50\nD,1,1\nD,1,1\nD,1,2\n");
    assert_int_equal(fixture_run(&f, &o, "import", "--stock", stock, NULL), 2);
    fixture_assert_contains(o.err,
                            ":3: SKU \"A\" is already there with other values\n");
    fixture_assert_contains(o.err,
                            ":6: SKU \"D\" stands on line 4 with other values\n");
    fixture_assert_contains(o.err, "2 bad lines");
    assert_int_equal(import_subscriptions(SUBSCRIPTIONS "u,p,1,day,1,2024-01-01\n"
                                                        "u,p,2,day,1,2024-01-01\n"),
                     2);
    fixture_assert_contains(o.err,
                            ":3: the subscription stands on line 2 with other terms");
}

static void import_in_another_currency_is_refused(void **state)
{
    (void)state;
    fixture_exec(f.url,
                 "INSERT INTO " L "users (external_ref, currency) VALUES ('ann', "
                 "'EUR')");
    assert_int_equal(import_orders(ORDERS "7,ann,A,2,2.50,2024-01-01\n"), 2);
    fixture_assert_contains(o.err,
                            ":2: customer \"ann\" has a wallet in EUR, not in USD");
    assert_int_equal(import_subscriptions(SUBSCRIPTIONS "ann,p,1,day,1,2024-01-01\n"),
                     2);
    fixture_assert_contains(o.err,
                            ":2: customer \"ann\" has a wallet in EUR, not in USD");
}

static void import_tells_the_first_twenty_bad_lines(void **state)
{
    char text[4096] = ORDERS;

    (void)state;
    for (int i = 0; i < 30; i++)
        (void)strcat(text, "1,u,A,0,2.50,2024-01-01\n");
    assert_int_equal(import_orders(text), 2);
    fixture_assert_contains(o.err, ":21: quantity is zero");
    assert_null(strstr(o.err, ":22: "));
    fixture_assert_contains(o.err, "... and 10 more bad lines");
}

/* ---- wrong files
 * --------------------------------------------------------------------- */

static void import_of_wrong_header_says_what_it_needs(void **state)
{
    (void)state;
    assert_int_equal(import_orders("order_ref,customer_ref,sku\n1,2,3\n"), 2);
    fixture_assert_contains(o.err,
                            ":1: the header lacks the column quantity; the first "
                            "line must name: order_ref,customer_ref,sku,quantity,"
                            "unit_price,placed_at");
    assert_int_equal(import_orders("order_ref,customer_ref,sku,quantity,unit_price,"
                                   "placed_at,colour\n"),
                     2);
    fixture_assert_contains(o.err, "names other columns or one twice");
    assert_int_equal(import_orders(""), 2);
    fixture_assert_contains(o.err, "is empty; it needs a header line");
}

static void import_of_nothing_or_nowhere_is_usage(void **state)
{
    (void)state;
    assert_int_equal(fixture_run(&f, &o, "import", NULL), 2);
    fixture_assert_contains(o.err, "nothing to import; name at least one file");
    assert_int_equal(fixture_run(&f, &o, "import", "--stock", "/nowhere/x.csv", NULL),
                     2);
    fixture_assert_contains(o.err, "cannot open /nowhere/x.csv: No such file");
    assert_int_equal(
        fixture_run(&f, &o, "import", "--stock", stock, "--deposit", "1.234", NULL), 2);
    fixture_assert_contains(o.err, "--deposit: has more decimals than USD (2)");
    assert_int_equal(fixture_run(&f, &o, "import", "--stock", stock, "--rejects",
                                 "/nowhere/rejects.csv", NULL),
                     2);
    fixture_assert_contains(o.err,
                            "cannot write the rejects file /nowhere/rejects.csv");
    assert_empty();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, opened, done)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(import_of_orders_sums_lines_per_sku_and_price),
        TEST(import_of_unknown_skus_rejects_the_order_naming_all),
        TEST(import_of_subscriptions_is_due_from_the_anchor),
        TEST(import_with_deposit_fills_new_wallets_once),
        TEST(import_again_changes_nothing),
        TEST(import_reads_columns_by_name_crlf_bom_and_quotes),
        TEST(imports_at_once_import_once),
        TEST(import_of_bad_order_lines_tells_file_line_and_reason),
        TEST(import_of_bad_subscription_lines_tells_the_reason),
        TEST(import_with_rejects_keeps_bad_lines_and_takes_the_others),
        TEST(import_of_corrected_rejects_works),
        TEST(import_of_same_order_with_other_lines_is_refused),
        TEST(import_of_contradictions_is_refused),
        TEST(import_in_another_currency_is_refused),
        TEST(import_tells_the_first_twenty_bad_lines),
        TEST(import_of_wrong_header_says_what_it_needs),
        TEST(import_of_nothing_or_nowhere_is_usage),
    };

    fixture_need_servers();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
