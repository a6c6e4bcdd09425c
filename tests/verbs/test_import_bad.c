/* import: bad lines and files are told with place and reason, and nothing is half
 * imported. */
#include <glob.h>

#include "tests/lib/import_world.h"

GROUP(.open = opened, .close = done);

/* ---- bad lines ---- */

/* clang-format off */
static const struct {
    const char *line, *reason;
} bad_orders[] = {
    {"1,u,A,1,2.50",                            "the line has 5 fields, not 6"},
    {"1",                                       "the line has 1 field, not 6"},
    {"1,,A,1,2.50,2024-01-01",                  "customer_ref is empty"},
    {"1,  ,A,1,2.50,2024-01-01",                "customer_ref is empty"},
    {",u,A,1,2.50,2024-01-01",                  "order_ref is empty"},
    {"1,u,,1,2.50,2024-01-01",                  "sku is empty"},
    {"1,u,A,0,2.50,2024-01-01",                 "quantity is zero"},
    {"1,u,A,-3,2.50,2024-01-01",                "quantity is negative"},
    {"1,u,A,1.5,2.50,2024-01-01",               "quantity is not a whole number"},
    {"1,u,A,,2.50,2024-01-01",                  "quantity is not a whole number"},
    {"1,u,A,99999999999999999999,2.50,2024-01-01", "quantity is too large"},
    {"1,u,A,1,0.00,2024-01-01",                 "unit_price is zero"},
    {"1,u,A,1,-2.50,2024-01-01",                "unit_price is negative"},
    {"1,u,A,1,2.505,2024-01-01",                "unit_price has more decimals than USD (2)"},
    {"1,u,A,1,two,2024-01-01",                  "unit_price is not an amount like 12.34"},
    {"1,u,A,1000000000,1000000,2024-01-01",     "quantity times unit_price is too large"},
    {"1,u,A,1,2.50,01/12/2010 08:26",           "placed_at is not a time like 2010-12-01T08:26:00Z"},
    {"1,\"u,A,1,2.50,2024-01-01",               "the line has a quote that is not closed"},
    {"1,caf\xE9,A,1,2.50,2024-01-01",           "the line is not UTF-8 text"},
}, bad_subscriptions[] = {
    {"u,p,0,month,1,2024-01-01",                "amount is zero"},
    {"u,p,-1,month,1,2024-01-01",               "amount is negative"},
    {"u,p,1,fortnight,1,2024-01-01",            "unit is not day, week, month or year"},
    {"u,p,1,month,0,2024-01-01",                "every is zero"},
    {"u,p,1,month,1001,2024-01-01",             "every is too large"},
    {"u,,1,month,1,2024-01-01",                 "plan is empty"},
    {"u,p,1,month,1,2023-02-29",                "anchor_at is not a time"},
};

/* clang-format on */

/* A file with this one bad line is refused with this reason. */
CASE(import_of_bad_order_lines_tells_file_line_and_reason)
{
    for (size_t i = 0; i < sizeof bad_orders / sizeof bad_orders[0]; i++) {
        char text[1024], told[512];

        (void)snprintf(text, sizeof text, ORDERS "1,u,A,1,2.50,2024-01-01\n%s\n",
                       bad_orders[i].line);
        import_orders(2, text);
        (void)snprintf(told, sizeof told, "%s:3: %s\n", orders, bad_orders[i].reason);
        shows(told);
        shows("1 bad line, so nothing was imported");
        assert_string_equal(said.out, "");
        assert_empty();
    }
}

CASE(import_of_bad_subscription_lines_tells_the_reason)
{
    for (size_t i = 0; i < sizeof bad_subscriptions / sizeof bad_subscriptions[0];
         i++) {
        char text[256];

        (void)snprintf(text, sizeof text, SUBSCRIPTIONS "%s\n",
                       bad_subscriptions[i].line);
        import_subscriptions(2, text);
        shows(bad_subscriptions[i].reason);
    }
    assert_empty();
}

static void assert_file(const char *path, const char *expected)
{
    char text[1024];
    FILE *file = fopen(path, "r");

    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    (void)fclose(file);
    assert_string_equal(text, expected);
}

CASE(import_with_rejects_keeps_bad_lines_and_takes_the_others)
{
    write_file(orders, ORDERS "1,u,A,1,2.50,2024-01-01\n2,u,A,-1,2.50,2024-01-01\r\n"
                              "3,\"x, y\",B,1,0,2024-01-01\n4,u,torn");
    says(&f, 0, "bad lines: 3, put aside in ",
         "import --stock %s --orders %s --rejects %s", stock, orders, rejects);
    holds(&f, 1, "SELECT count(*) FROM orders");
    assert_file(rejects,
                "order_ref,customer_ref,sku,quantity,unit_price,placed_at,rejected\n"
                "2,u,A,-1,2.50,2024-01-01,\"quantity is negative\"\n"
                "3,\"x, y\",B,1,0,2024-01-01,\"unit_price is zero\"\n"
                "4,u,torn,\"the line has 3 fields, not 6\"\n");
}

CASE(import_with_rejects_into_its_input_is_refused)
{
    for (int i = 0; i < 3; i++) {
        (void)unlink(rejects);
        if (i > 0)
            assert_int_equal(i == 1 ? symlink(stock, rejects) : link(stock, rejects),
                             0);
        says(&f, 2, "is the file that --stock reads", "import --stock %s --rejects %s",
             stock, i == 0 ? stock : rejects);
        assert_file(stock, THREE_SKUS);
    }
    assert_empty();
}

/* Nothing beside the rejects file: what was written under another name is gone. */
static void assert_alone(const char *path)
{
    char pattern[160];
    glob_t found;

    (void)snprintf(pattern, sizeof pattern, "%s.*", path);
    assert_int_equal(glob(pattern, 0, NULL, &found), GLOB_NOMATCH);
    globfree(&found);
}

static void write_rejects(const char *text)
{
    FILE *file = fopen(rejects, "w");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

CASE(import_whose_commit_fails_leaves_the_rejects_file_alone)
{
    fixture_exec(
        f.url,
        "CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS "
        "$$BEGIN RAISE EXCEPTION 'not today'; END$$;"
        "CREATE CONSTRAINT TRIGGER late AFTER INSERT ON ledgerlock.stock DEFERRABLE "
        "INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.refuse()");
    write_rejects("from yesterday\n");
    write_file(stock, STOCK "A,1,1\nB,-1,1\n");
    says(&f, 70, "not today", "import --stock %s --rejects %s", stock, rejects);
    assert_file(rejects, "from yesterday\n");
    assert_alone(rejects);
    assert_empty();
}

CASE(import_replaces_the_rejects_file_and_keeps_its_mode)
{
    struct stat st;

    write_rejects("from yesterday\n");
    assert_int_equal(chmod(rejects, 0640), 0);
    runs(&f, 0, "import --stock %s --rejects %s", stock, rejects);
    assert_file(rejects, "");
    assert_alone(rejects);
    assert_int_equal(stat(rejects, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
    runs(&f, 0, "import --stock %s --rejects /dev/null", stock);
    assert_int_equal(stat("/dev/null", &st), 0);
    assert_true(S_ISCHR(st.st_mode));
}

/* The first is a corrected file of rejects. */
CASE(import_of_same_order_with_other_lines_is_refused)
{
    import_orders(0,
                  "order_ref,customer_ref,sku,quantity,unit_price,placed_at,rejected\n"
                  "7,ann,A,2,2.50,2024-01-01,\"quantity is negative\"\n");
    import_orders(2, ORDERS "6,ann,A,2,2.50,2024-01-01\n"
                            "7,ann,A,3,2.50,2024-01-01\n");
    shows(":3: order \"7\" of customer \"ann\" is already there with other lines\n");
    holds(&f, 1, "SELECT count(*) FROM orders");
}

CASE(import_of_contradictions_is_refused)
{
    import_orders(0, ORDERS);
    write_file(stock, STOCK "A,10,2.50\nA,11,2.50\nD,1,1\nD,1,1\nD,1,2\n");
    says(&f, 2, ":3: SKU \"A\" is already there with other values\n",
         "import --stock %s", stock);
    shows(":6: SKU \"D\" stands on line 4 with other values\n");
    shows("2 bad lines");
    import_subscriptions(2, SUBSCRIPTIONS "u,p,1,day,1,2024-01-01\n"
                                          "u,p,2,day,1,2024-01-01\n");
    shows(":3: the subscription stands on line 2 with other terms");
}

CASE(import_in_another_currency_is_refused)
{
    fixture_exec(
        f.url,
        "INSERT INTO ledgerlock.users (external_ref, currency) VALUES ('ann', 'EUR')");
    import_orders(2, ORDERS "7,ann,A,2,2.50,2024-01-01\n");
    shows(":2: customer \"ann\" has a wallet in EUR, not in USD");
    import_subscriptions(2, SUBSCRIPTIONS "ann,p,1,day,1,2024-01-01\n");
    shows(":2: customer \"ann\" has a wallet in EUR, not in USD");
}

/* One order with this many lines, each of a SKU of its own, and a small order. */
static void write_order_of(int skus)
{
    FILE *file;

    write_file(orders, ORDERS "1,u,A,1,2.50,2024-01-01\n");
    file = fopen(orders, "a");
    assert_non_null(file);
    for (int i = 0; i < skus; i++)
        (void)fprintf(file, "2,u,S%d,1,2.50,2024-01-01\n", i);
    (void)fprintf(file, "2,u,S0,5,2.50,2024-01-01\n"); /* none of its own */
    assert_int_equal(fclose(file), 0);
}

CASE(import_of_order_with_more_skus_than_a_batch_locks_is_refused)
{
    write_order_of(1000);
    says(
        &f, 2,
        ":3: order \"2\" of customer \"u\" has 1000 different SKUs, at most 999 fit into one order\n",
        "import --stock %s --orders %s", stock, orders);
    shows("1001 bad lines, so nothing was imported");
    says(&f, 0, "orders: 1 new", "import --stock %s --orders %s --rejects %s", stock,
         orders, rejects);
    write_order_of(999);
    says(&f, 0, "orders: 1 new, 1 already there", "import --orders %s", orders);
}

CASE(import_tells_the_first_twenty_bad_lines)
{
    char text[4096] = ORDERS;

    for (int i = 0; i < 30; i++)
        (void)strcat(text, "1,u,A,0,2.50,2024-01-01\n");
    import_orders(2, text);
    shows(":21: quantity is zero");
    assert_null(strstr(said.err, ":22: "));
    shows("... and 10 more bad lines");
}

/* ---- wrong files ---- */

CASE(import_of_wrong_header_says_what_it_needs)
{
    import_orders(2, "order_ref,customer_ref,sku\n1,2,3\n");
    shows(
        ":1: the header lacks the column quantity; the first line must name: order_ref,customer_ref,sku,quantity,"
        "unit_price,placed_at");
    import_orders(2,
                  "order_ref,customer_ref,sku,quantity,unit_price,placed_at,colour\n");
    shows("names other columns or one twice");
    import_orders(2, "");
    shows("is empty; it needs a header line");
}

CASE(import_of_nothing_or_nowhere_is_usage)
{
    says(&f, 2, "nothing to import; name at least one file", "import");
    says(&f, 2, "cannot open /nowhere/x.csv: No such file",
         "import --stock /nowhere/x.csv");
    says(&f, 2, "--deposit: has more decimals than USD (2)",
         "import --stock %s --deposit 1.234", stock);
    says(&f, 2, "cannot write the rejects file /nowhere/rejects.csv",
         "import --stock %s --rejects /nowhere/rejects.csv", stock);
    assert_empty();
}
