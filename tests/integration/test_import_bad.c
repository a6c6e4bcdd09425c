/* import: bad lines and files are told with place and reason, and nothing is half
 * imported. */
#include <glob.h>

#include "tests/lib/import_world.h"

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

/* ---- bad lines ---- */

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

static void assert_file(const char *path, const char *expected)
{
    char text[1024];
    FILE *file = fopen(path, "r");

    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    (void)fclose(file);
    assert_string_equal(text, expected);
}

static void assert_rejects_into_input_refused(const char *path)
{
    assert_int_equal(
        fixture_run(&f, &o, "import", "--stock", stock, "--rejects", path, NULL), 2);
    fixture_assert_contains(o.err, "is the file that --stock reads");
    assert_file(stock, THREE_SKUS);
}

static void import_with_rejects_into_its_input_is_refused(void **state)
{
    (void)state;
    assert_rejects_into_input_refused(stock);
    assert_int_equal(symlink(stock, rejects), 0);
    assert_rejects_into_input_refused(rejects);
    (void)unlink(rejects);
    assert_int_equal(link(stock, rejects), 0);
    assert_rejects_into_input_refused(rejects);
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

static void import_whose_commit_fails_leaves_the_rejects_file_alone(void **state)
{
    (void)state;
    fixture_exec(f.url,
                 "CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS "
                 "$$BEGIN RAISE EXCEPTION 'not today'; END$$;"
                 "CREATE CONSTRAINT TRIGGER late AFTER INSERT ON " L "stock DEFERRABLE "
                 "INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.refuse()");
    write_rejects("from yesterday\n");
    write_file(stock, STOCK "A,1,1\nB,-1,1\n");
    assert_int_not_equal(
        fixture_run(&f, &o, "import", "--stock", stock, "--rejects", rejects, NULL), 0);
    fixture_assert_contains(o.err, "not today");
    assert_file(rejects, "from yesterday\n");
    assert_alone(rejects);
    assert_empty();
}

static void import_replaces_the_rejects_file_and_keeps_its_mode(void **state)
{
    struct stat st;

    (void)state;
    write_rejects("from yesterday\n");
    assert_int_equal(chmod(rejects, 0640), 0);
    assert_int_equal(
        fixture_run(&f, &o, "import", "--stock", stock, "--rejects", rejects, NULL), 0);
    assert_file(rejects, "");
    assert_alone(rejects);
    assert_int_equal(stat(rejects, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
    assert_int_equal(
        fixture_run(&f, &o, "import", "--stock", stock, "--rejects", "/dev/null", NULL),
        0);
    assert_int_equal(stat("/dev/null", &st), 0);
    assert_true(S_ISCHR(st.st_mode));
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

static void import_of_order_with_more_skus_than_a_batch_locks_is_refused(void **state)
{
    (void)state;
    write_order_of(1000);
    assert_int_equal(
        fixture_run(&f, &o, "import", "--stock", stock, "--orders", orders, NULL), 2);
    fixture_assert_contains(o.err, ":3: order \"2\" of customer \"u\" has 1000 "
                                   "different SKUs, at most 999 fit into one order\n");
    fixture_assert_contains(o.err, "1001 bad lines, so nothing was imported");
    assert_int_equal(fixture_run(&f, &o, "import", "--stock", stock, "--orders", orders,
                                 "--rejects", rejects, NULL),
                     0);
    fixture_assert_contains(o.out, "orders: 1 new");
    write_order_of(999);
    assert_int_equal(fixture_run(&f, &o, "import", "--orders", orders, NULL), 0);
    fixture_assert_contains(o.out, "orders: 1 new, 1 already there");
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

/* ---- wrong files ---- */

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(import_of_bad_order_lines_tells_file_line_and_reason),
        TEST(import_of_bad_subscription_lines_tells_the_reason),
        TEST(import_with_rejects_keeps_bad_lines_and_takes_the_others),
        TEST(import_with_rejects_into_its_input_is_refused),
        TEST(import_whose_commit_fails_leaves_the_rejects_file_alone),
        TEST(import_replaces_the_rejects_file_and_keeps_its_mode),
        TEST(import_of_corrected_rejects_works),
        TEST(import_of_same_order_with_other_lines_is_refused),
        TEST(import_of_contradictions_is_refused),
        TEST(import_in_another_currency_is_refused),
        TEST(import_of_order_with_more_skus_than_a_batch_locks_is_refused),
        TEST(import_tells_the_first_twenty_bad_lines),
        TEST(import_of_wrong_header_says_what_it_needs),
        TEST(import_of_nothing_or_nowhere_is_usage),
    };

    fixture_need_servers();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
