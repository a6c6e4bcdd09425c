/* seed: one number makes one world, in an empty database only, spread as it says. */
#include <stdio.h>
#include <string.h>

#include "tests/lib/fixture.h"

#define L "ledgerlock."
#define NOW "2024-03-15T00:00:00Z"

static struct fixture f, g;
static struct fixture_output o;

static int one(void **state)
{
    (void)state;
    fixture_open_migrated(&f);
    return 0;
}

static int one_done(void **state)
{
    (void)state;
    fixture_close(&f);
    return 0;
}

static int two(void **state)
{
    fixture_open_migrated(&g);
    return one(state);
}

static int two_done(void **state)
{
    fixture_close(&g);
    return one_done(state);
}

static int seed(const struct fixture *where, const char *number)
{
    return fixture_run(where, &o, "seed", "--users", "800", "--subscriptions", "4000",
                       "--skus", "80", "--orders", "1500", "--seed", number, "--now",
                       NOW, NULL);
}

static int64_t ask(const char *sql)
{
    return fixture_query_int8(f.url, sql);
}

static void assert_about(int64_t got, int64_t low, int64_t high)
{
    if (got < low || got > high)
        fail_msg("%ld is not within %ld and %ld", (long)got, (long)low, (long)high);
}

/* One md5 over every row of every table that seed fills. */
static void fingerprint(const struct fixture *where, char *buf, size_t size)
{
    fixture_query_text(
        where->url,
        "SELECT md5(concat("
        "(SELECT string_agg(t::text, ';' ORDER BY user_id) FROM " L "users t),"
        "(SELECT string_agg(t::text, ';' ORDER BY subscription_id) FROM " L
        "subscriptions t),"
        "(SELECT string_agg(t::text, ';' ORDER BY sku_id) FROM " L "stock t),"
        "(SELECT string_agg(t::text, ';' ORDER BY order_id) FROM " L "orders t),"
        "(SELECT string_agg(t::text, ';' ORDER BY order_id, sku_id) FROM " L
        "order_lines t),"
        "(SELECT string_agg(t::text, ';' ORDER BY source, leg, kind) FROM " L
        "transfers t)))",
        buf, size);
}

static void seed_of_same_number_makes_identical_tables(void **state)
{
    char a[64], b[64];

    (void)state;
    assert_int_equal(seed(&f, "7"), 0);
    /* Numbers that a failed try used up must not show. */
    fixture_exec(g.url, "SELECT nextval('" L "users_user_id_seq'), nextval('" L
                        "orders_order_id_seq')");
    assert_int_equal(seed(&g, "7"), 0);
    fingerprint(&f, a, sizeof a);
    fingerprint(&g, b, sizeof b);
    assert_string_equal(a, b);
}

static void seed_of_other_number_makes_other_tables(void **state)
{
    char a[64], b[64];

    (void)state;
    assert_int_equal(seed(&f, "7"), 0);
    assert_int_equal(seed(&g, "8"), 0);
    fingerprint(&f, a, sizeof a);
    fingerprint(&g, b, sizeof b);
    assert_string_not_equal(a, b);
}

static void seed_of_filled_database_is_refused(void **state)
{
    (void)state;
    fixture_exec(f.url, "INSERT INTO " L "stock (sku, initial_qty, on_hand, "
                        "unit_price_minor, currency) VALUES ('A', 1, 1, 1, 'USD')");
    assert_int_equal(seed(&f, "1"), 6);
    fixture_assert_contains(o.err,
                            "the database already holds stock; seed fills an empty "
                            "database only");
    assert_int_equal(ask("SELECT count(*) FROM " L "users"), 0);
}

static void seed_if_empty_leaves_a_filled_database_alone(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++)
        assert_int_equal(fixture_run(&f, &o, "seed", "--if-empty", "--users", "10",
                                     "--subscriptions", "20", "--orders", "5", NULL),
                         0);
    fixture_assert_contains(o.out, "already holds data; nothing was seeded");
    assert_int_equal(ask("SELECT count(*) FROM " L "users"), 10);
}

static void seeds_at_once_seed_once(void **state)
{
    struct fixture_child children[3];
    int codes[3], won = 0;

    (void)state;
    for (int i = 0; i < 3; i++)
        fixture_spawn(&f, &children[i], "seed", "--users", "500", "--subscriptions",
                      "2000", NULL);
    for (int i = 0; i < 3; i++) {
        codes[i] = fixture_wait(&children[i], 60, NULL);
        assert_true(codes[i] == 0 || codes[i] == 6);
        won += codes[i] == 0;
    }
    assert_int_equal(won, 1);
    assert_int_equal(ask("SELECT count(*) FROM " L "users"), 500);
}

static void seed_spreads_subscriptions(void **state)
{
    (void)state;
    assert_int_equal(seed(&f, "3"), 0);
    assert_int_equal(ask("SELECT count(*) FROM " L "subscriptions"), 4000);
    assert_int_equal(ask("SELECT count(DISTINCT extract(day FROM anchor_at)) FROM " L
                         "subscriptions WHERE unit = 'month'"),
                     31);
    /* 3,200 over 31 days are 103 each */
    assert_about(ask("SELECT min(n) FROM (SELECT count(*) AS n FROM " L
                     "subscriptions WHERE unit = 'month' GROUP BY extract(day FROM "
                     "anchor_at)) AS d"),
                 60, 103);
    assert_about(ask("SELECT count(*) FROM " L "subscriptions WHERE unit = 'month'"),
                 3100, 3300);
    assert_about(ask("SELECT count(*) FROM " L "subscriptions WHERE unit = 'week'"),
                 520, 680);
    assert_about(ask("SELECT count(*) FROM " L "subscriptions WHERE unit = 'year'"),
                 150, 250);
    assert_about(
        ask("SELECT count(*) FROM " L "subscriptions WHERE anchor_at > '" NOW "'"), 60,
        200);
    assert_about(
        ask("SELECT count(*) FROM " L "subscriptions WHERE cancel_at IS NOT NULL"), 100,
        230);
    assert_int_equal(
        ask("SELECT count(*) FROM " L "subscriptions WHERE cancel_at IS NOT NULL "
            "AND NOT EXISTS (SELECT FROM generate_series(1, 30) AS k WHERE " L
            "period_start(anchor_at, unit, every, k) = cancel_at)"),
        0);
}

static void seed_counts_the_periods_that_are_due(void **state)
{
    char expected[64];

    (void)state;
    assert_int_equal(seed(&f, "4"), 0);
    (void)snprintf(
        expected, sizeof expected, "with %ld periods due at 2024-03-15 00:00:00",
        (long)ask("SELECT count(*) FROM " L "subscriptions, LATERAL (SELECT " L
                  "period_start(anchor_at, unit, every, k) AS at FROM "
                  "generate_series(0, 40) AS k) AS p WHERE at <= '" NOW
                  "' AND (cancel_at IS NULL OR at < cancel_at)"));
    fixture_assert_contains(o.out, expected);
}

static void seed_wants_hot_skus_far_beyond_stock(void **state)
{
    (void)state;
    assert_int_equal(seed(&f, "5"), 0);
    assert_int_equal(ask("SELECT count(*) FROM " L "stock s WHERE sku_id <= 2 AND "
                         "initial_qty * 9 < (SELECT sum(qty) FROM " L
                         "order_lines l WHERE l.sku_id = s.sku_id)"),
                     2);
    assert_about(ask("SELECT count(*) FROM " L
                     "stock s WHERE initial_qty < (SELECT sum(qty) "
                     "FROM " L "order_lines l WHERE l.sku_id = s.sku_id)"),
                 3, 30);
    assert_int_equal(ask("SELECT count(DISTINCT n) FROM (SELECT count(*) AS n FROM " L
                         "order_lines GROUP BY order_id) AS x WHERE n BETWEEN 1 AND 4"),
                     4);
    assert_int_equal(ask("SELECT count(*) FROM " L
                         "orders o WHERE total_minor <> (SELECT "
                         "sum(qty * unit_price_minor) FROM " L
                         "order_lines l WHERE l.order_id = o.order_id)"),
                     0);
}

static void seed_fills_wallets_of_which_some_run_dry(void **state)
{
    (void)state;
    assert_int_equal(seed(&f, "6"), 0);
    assert_int_equal(ask("SELECT count(*) FROM " L
                         "users u WHERE balance_minor <> coalesce("
                         "(SELECT sum(amount_minor) FROM " L
                         "transfers t WHERE t.user_id = u.user_id), 0)"),
                     0);
    assert_about(
        ask("SELECT count(*) FROM " L "users u WHERE balance_minor < (SELECT "
            "coalesce(sum(amount_minor), 0) FROM " L
            "subscriptions s, LATERAL (SELECT " L
            "period_start(anchor_at, unit, every, k) AS at FROM generate_series(0, "
            "40) AS k) AS p WHERE s.user_id = u.user_id AND at <= '" NOW
            "' AND (cancel_at IS NULL OR at < cancel_at))"),
        8, 80);
}

static void seed_sends_some_orders_twice_through_the_door(void **state)
{
    char *at;
    int sent = 0;

    (void)state;
    assert_int_equal(seed(&f, "9"), 0);
    at = strstr(o.out, "1500 orders (");
    assert_non_null(at);
    assert_int_equal(sscanf(at, "1500 orders (%d sent twice)", &sent), 1);
    assert_about(sent, 40, 120);
    assert_int_equal(ask("SELECT count(*) FROM " L "orders"), 1500);
    /* Any client that repeats an order gets it back; another body is refused. */
    assert_int_equal(
        ask("SELECT count(*) FROM " L "orders o WHERE order_id <> " L
            "place_order(user_id, idempotency_key, (SELECT jsonb_agg(jsonb_build_object("
            "'sku', sku, 'qty', qty) ORDER BY sku_id) FROM " L "order_lines JOIN " L
            "stock USING (sku_id) WHERE order_id = o.order_id))"),
        0);
}

static void seed_lets_new_rows_follow(void **state)
{
    (void)state;
    assert_int_equal(seed(&f, "1"), 0);
    assert_int_equal(ask("INSERT INTO " L "users (currency) VALUES ('USD') RETURNING "
                         "user_id"),
                     801);
    assert_int_equal(ask("SELECT " L "deposit(801, 0, 500)"), 500);
    assert_true(ask("SELECT " L "place_order(801, 'mine', '[{\"sku\": \"SKU-00001\", "
                    "\"qty\": 1}]')") > 1500);
}

static void seed_with_wrong_words_is_usage(void **state)
{
    (void)state;
    assert_int_equal(fixture_run(&f, &o, "seed", "--skus", "0", NULL), 2);
    fixture_assert_contains(o.err, "orders need SKUs");
    assert_int_equal(fixture_run(&f, &o, "seed", "--now", "tomorrow", NULL), 2);
    fixture_assert_contains(o.err, "--now is not a time");
    assert_int_equal(fixture_run(&f, &o, "seed", "--users", "0", NULL), 2);
}

#define ONE(name) cmocka_unit_test_setup_teardown(name, one, one_done)
#define TWO(name) cmocka_unit_test_setup_teardown(name, two, two_done)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TWO(seed_of_same_number_makes_identical_tables),
        TWO(seed_of_other_number_makes_other_tables),
        ONE(seed_of_filled_database_is_refused),
        ONE(seed_if_empty_leaves_a_filled_database_alone),
        ONE(seeds_at_once_seed_once),
        ONE(seed_spreads_subscriptions),
        ONE(seed_counts_the_periods_that_are_due),
        ONE(seed_wants_hot_skus_far_beyond_stock),
        ONE(seed_fills_wallets_of_which_some_run_dry),
        ONE(seed_sends_some_orders_twice_through_the_door),
        ONE(seed_lets_new_rows_follow),
        ONE(seed_with_wrong_words_is_usage),
    };

    fixture_need_servers();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
