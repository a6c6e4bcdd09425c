/* real data: a wholesaler's December and 7,043 subscribers, converted, imported, served
 * and audited; every total is compared with what awk says of the published file. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/fixture.h"

#define L "ledgerlock."

static struct fixture f;
static struct fixture_output o;
static char dir[64]; /* converted files */
static char retail[512], telco[512];
static const char *source;

/* ---- what awk says of the originals: shares no code with converters or importer
 * ------ */

/* Good lines have eight fields or more (commas in descriptions), a customer, and
 * quantity and price above zero. Prints lines, units, pennies. */
static const char retail_awk[] =
    "LC_ALL=C awk -F, 'NR > 1 && NF >= 8 && $(NF-1) != \"\" && $(NF-4) > 0 && $(NF-2) > 0 {"
    "  split($(NF-2), p, \".\"); n++; u += $(NF-4);"
    "  c += $(NF-4) * (p[1] * 100 + substr(p[2] \"00\", 1, 2)) }"
    "END { printf \"%.0f %.0f %.0f\", n, u, c }'";

/* Orders are different pairs of invoice and customer. */
static const char retail_orders_awk[] =
    "LC_ALL=C awk -F, 'NR > 1 && NF >= 8 && $(NF-1) != \"\" && $(NF-4) > 0 && $(NF-2) > 0 "
    "&& !(($1, $(NF-1)) in seen) { seen[$1, $(NF-1)]; n++ } END { print n, 0, 0 }'";

/* A contract of m months that began t months ago is due int(t / m) + 1 times. Prints
 * subscribers, periods, pennies. */
static const char telco_awk[] =
    "awk -F, 'NR > 1 { m = $16 ~ /^Month/ ? 1 : $16 ~ /^One/ ? 12 : 24;"
    "  split($19, p, \".\"); k = int($6 / m) + 1; n++; u += k;"
    "  c += k * m * (p[1] * 100 + substr(p[2] \"00\", 1, 2)) }"
    "END { printf \"%.0f %.0f %.0f\", n, u, c }'";

struct expected {
    int64_t rows, units, minor;
};

static void shell(const char *command)
{
    if (system(command) != 0)
        fail_msg("failed: %s", command);
}

static struct expected awk(const char *program, const char *file)
{
    char command[2048];
    long long rows, units, minor;
    FILE *p;

    (void)snprintf(command, sizeof command, "%s '%s'", program, file);
    p = popen(command, "r");
    assert_non_null(p);
    assert_int_equal(fscanf(p, "%lld %lld %lld", &rows, &units, &minor), 3);
    assert_int_equal(pclose(p), 0);
    return (struct expected){rows, units, minor};
}

/* ---- steps ---- */

static char *in_dir(const char *name, char path[128])
{
    (void)snprintf(path, 128, "%s/%s", dir, name);
    return path;
}

static void
convert(const char *script, const char *variable, const char *from, const char *to)
{
    char command[2048];

    (void)snprintf(command, sizeof command,
                   "LC_ALL=C awk -v %s -f '%s/scripts/convert/%s' '%s' > '%s/%s'",
                   variable, source, script, from, dir, to);
    shell(command);
}

static void convert_retail(const char *divide)
{
    char path[128];

    convert("online-retail.awk", "x=1", retail, "orders.csv");
    convert("stock-for-orders.awk", divide, in_dir("orders.csv", path), "stock.csv");
}

static void import_retail(void)
{
    char orders[128], stock[128], rejects[128];

    assert_int_equal(
        fixture_run(&f, &o, "import", "--orders", in_dir("orders.csv", orders),
                    "--stock", in_dir("stock.csv", stock), "--rejects",
                    in_dir("rejects.csv", rejects), "--deposit", "1000000.00", NULL),
        0);
}

static void serve(const char *now)
{
    struct fixture_child child;

    fixture_spawn(&f, &child, "run", "-w", "4", "--once", "--now", now, NULL);
    assert_int_equal(fixture_wait(&child, 120, &o), 0);
}

/* The audit's document; it held. */
static json_t *audit(const char *now)
{
    json_error_t error;
    json_t *doc;

    assert_int_equal(fixture_run(&f, &o, "audit", "--json", "--now", now, NULL), 0);
    doc = json_loads(o.out, 0, &error);
    assert_non_null(doc);
    assert_true(json_is_true(json_object_get(doc, "ok")));
    return doc;
}

static int64_t total(json_t *doc, const char *group, const char *key)
{
    json_t *of = json_object_get(json_object_get(doc, "totals"), group);
    json_t *value = json_object_get(of, key);

    if (strcmp(group, "money") == 0)
        value = json_object_get(json_object_get(of, "USD"), key);
    if (!json_is_integer(value))
        fail_msg("the audit has no totals.%s.%s: %s", group, key, o.out);
    return json_integer_value(value);
}

static int64_t ask(const char *sql)
{
    return fixture_query_int8(f.url, sql);
}

/* ---- tests ---- */

static int opened(void **state)
{
    (void)state;
    fixture_open_migrated(&f);
    (void)strcpy(dir, "/tmp/ledgerlock_real.XXXXXX");
    assert_non_null(mkdtemp(dir));
    return 0;
}

static int done(void **state)
{
    static const char *const names[] = {"orders.csv", "stock.csv", "rejects.csv",
                                        "subscriptions.csv"};
    char path[128];

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        (void)unlink(in_dir(names[i], path));
    (void)rmdir(dir);
    fixture_close(&f);
    return 0;
}

static void wholesaler_with_stock_for_everything_sells_everything(void **state)
{
    struct expected lines = awk(retail_awk, retail);
    struct expected orders = awk(retail_orders_awk, retail);
    json_t *doc;

    (void)state;
    convert_retail("divide=1");
    import_retail();
    serve("2011-01-01T00:00:00Z");
    doc = audit("2011-01-01T00:00:00Z");
    assert_int_equal(total(doc, "stock", "sold"), lines.units);
    assert_int_equal(total(doc, "stock", "left"), 0);
    assert_int_equal(total(doc, "stock", "oversold"), 0);
    assert_int_equal(total(doc, "money", "order_revenue"), lines.minor);
    assert_int_equal(total(doc, "orders", "fulfilled"), orders.rows);
    assert_int_equal(total(doc, "orders", "in"), orders.rows);
    json_decref(doc);
}

static void wholesaler_rejects_are_all_other_lines(void **state)
{
    struct expected lines = awk(retail_awk, retail);
    char told[64];

    (void)state;
    convert_retail("divide=1");
    import_retail();
    (void)snprintf(told, sizeof told, "bad lines: %lld, put aside",
                   (long long)awk("awk 'END { print NR - 1, 0, 0 }'", retail).rows -
                       (long long)lines.rows);
    fixture_assert_contains(o.out, told);
    import_retail();
    fixture_assert_contains(o.out, "orders: 0 new");
}

static void wholesaler_with_half_the_stock_oversells_nothing(void **state)
{
    json_t *doc;

    (void)state;
    convert_retail("divide=2");
    import_retail();
    serve("2011-01-01T00:00:00Z");
    doc = audit("2011-01-01T00:00:00Z");
    assert_int_equal(total(doc, "stock", "oversold"), 0);
    assert_true(total(doc, "stock", "sold") > 0);
    assert_true(total(doc, "stock", "sold") <= total(doc, "stock", "before"));
    assert_true(total(doc, "orders", "rejected") > 0);
    assert_int_equal(total(doc, "orders", "fulfilled") +
                         total(doc, "orders", "rejected"),
                     total(doc, "orders", "in"));
    json_decref(doc);
    assert_int_equal(ask("SELECT count(*) FROM " L "stock WHERE on_hand < 0"), 0);
    assert_int_equal(ask("SELECT count(*) FROM " L
                         "orders WHERE state = 'rejected' AND "
                         "(reason <> 'out_of_stock' OR cardinality(skus) = 0)"),
                     0);
    /* Each name is a SKU of that order. */
    assert_int_equal(
        ask("SELECT count(*) FROM " L "orders o, unnest(o.skus) AS name WHERE "
            "NOT EXISTS (SELECT FROM " L "order_lines JOIN " L
            "stock USING (sku_id) WHERE order_id = o.order_id AND sku = name)"),
        0);
    /* Whatever is left of a SKU at the end was too little for someone who asked for it.
     */
    assert_int_equal(
        ask("SELECT count(*) FROM " L "orders o, unnest(o.skus) AS name JOIN " L
            "stock s ON s.sku = name WHERE s.on_hand >= (SELECT sum(qty) FROM " L
            "order_lines WHERE order_id = o.order_id AND sku_id = s.sku_id)"),
        0);
}

static void subscribers_are_charged_for_every_period_once(void **state)
{
    struct expected due = awk(telco_awk, telco);
    char path[128];
    json_t *doc;

    (void)state;
    convert("telco-churn.awk", "now=2024-01-01", telco, "subscriptions.csv");
    assert_int_equal(fixture_run(&f, &o, "import", "--subscriptions",
                                 in_dir("subscriptions.csv", path), "--deposit",
                                 "1000000.00", NULL),
                     0);
    assert_int_equal(ask("SELECT count(*) FROM " L "subscriptions"), due.rows);
    serve("2024-01-01T00:00:00Z");
    doc = audit("2024-01-01T00:00:00Z");
    assert_int_equal(total(doc, "billing", "periods_due"), due.units);
    assert_int_equal(total(doc, "billing", "charged"), due.units);
    assert_int_equal(total(doc, "billing", "charged_twice"), 0);
    assert_int_equal(total(doc, "money", "subscription_revenue"), due.minor);
    json_decref(doc);
}

static void need_file(const char *name, char path[512])
{
    const char *shared = getenv("LEDGERLOCK_TEST_SHARED");

    (void)snprintf(path, 512, "%s/data/%s", shared != NULL ? shared : "", name);
    if (shared == NULL || access(path, R_OK) != 0) {
        (void)fprintf(stderr,
                      "skipped: no %s; docs/import.md says where it is published\n",
                      shared != NULL ? path : "LEDGERLOCK_TEST_SHARED");
        exit(77);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, opened, done)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(wholesaler_with_stock_for_everything_sells_everything),
        TEST(wholesaler_rejects_are_all_other_lines),
        TEST(wholesaler_with_half_the_stock_oversells_nothing),
        TEST(subscribers_are_charged_for_every_period_once),
    };

    need_file("online-retail-2010-12.csv", retail);
    need_file("telco-customer-churn.csv", telco);
    fixture_need_servers();
    source = getenv("LEDGERLOCK_TEST_SOURCE");
    if (source == NULL)
        source = ".";
    return cmocka_run_group_tests(tests, NULL, NULL);
}
