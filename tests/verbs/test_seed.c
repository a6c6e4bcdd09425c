/* seed: one number makes one world, in an empty database only, spread as it says. */
#include "tests/lib/one_database.h"

#define NOW "2024-03-15T00:00:00Z"
#define SEED                                                                           \
    "seed --users 800 --subscriptions 4000 --skus 80 --orders 1500 --now " NOW         \
    " --seed %s"

GROUP(.open = one_open, .close = one_close);

/* ---- which world ---- */

/* An md5 over every row of every table that seed fills, without cards. */
static void fingerprint(const struct fixture *where, char buf[64])
{
    fixture_query_text(
        where->url,
        "SELECT md5(string_agg(md5(x::text), ' ' ORDER BY md5(x::text))) FROM (SELECT (to_jsonb(t) - '{card_customer,card_method}'::text[])::text AS x FROM"
        " ledgerlock.users AS t UNION ALL SELECT t::text FROM ledgerlock.subscriptions AS t"
        " UNION ALL SELECT t::text FROM ledgerlock.stock AS t UNION ALL SELECT (to_jsonb(t) - 'recorded_at')::text FROM"
        " ledgerlock.orders AS t UNION ALL SELECT t::text FROM ledgerlock.order_lines AS t"
        " UNION ALL SELECT (to_jsonb(t) - 'recorded_at')::text FROM ledgerlock.wallet_entries AS t) AS all_rows",
        buf, 64);
}

CASE(seed_of_same_number_makes_identical_tables_and_of_another_others)
{
    struct fixture worlds[2];
    char prints[3][64];

    runs(&f, 0, SEED, "7");
    fingerprint(&f, prints[0]);
    for (int i = 0; i < 2; i++) {
        fixture_open_migrated(&worlds[i]);
        /* Numbers that a failed try used up must not show. */
        fixture_exec(worlds[i].url, "SELECT nextval('ledgerlock.users_user_id_seq'),"
                                    " nextval('ledgerlock.orders_order_id_seq')");
        runs(&worlds[i], 0, SEED, i == 0 ? "7" : "8");
        fingerprint(&worlds[i], prints[i + 1]);
        fixture_close(&worlds[i]);
    }
    assert_string_equal(prints[1], prints[0]);
    assert_string_not_equal(prints[2], prints[0]);
}

/* Nothing else of the world depends on who pays by card. */
CASE(cards_of_a_seed_are_as_by_pay_with)
{
    static const char world[] =
        "seed --users 900 --subscriptions 0 --skus 0 --orders 0 --now " NOW;
    struct fixture other;
    char prints[2][64], expected[64];
    int64_t ct;

    runs(&f, 0, "%s --cards 20", world);
    ct = ask("SELECT count(*) FROM users WHERE card_customer IS NOT NULL");
    assert_in_range(ct, 130, 230);
    (void)snprintf(expected, sizeof expected, "900 users (%" PRId64 " pay by card),",
                   ct);
    shows(expected);
    runs(&f, 0, "audit");
    holds(&f, ct, "SELECT count(*) FROM events WHERE event = 'pays_with'");
    /* Customers and cards are such as pay_with takes, and nothing is new to it. */
    holds(&f, 0,
          "SELECT count(*) FROM users WHERE card_customer IS NOT NULL AND"
          " pay_with(user_id, 'card', card_customer, card_method)");
    holds(&f, 4,
          "SELECT count(DISTINCT rtrim(card_customer, '0123456789')) FROM users");
    assert_in_range(
        ask("SELECT count(*) FROM users WHERE card_customer LIKE 'cus_declines%'"), 4,
        50);
    fingerprint(&f, prints[0]);
    fixture_open_migrated(&other);
    runs(&other, 0, "%s", world);
    fingerprint(&other, prints[1]);
    holds(&other, 0, "SELECT count(*) FROM users WHERE card_customer IS NOT NULL");
    fixture_close(&other);
    assert_string_equal(prints[1], prints[0]);
}

CASE(seed_of_filled_database_is_refused)
{
    fixture_exec(f.url, "INSERT INTO ledgerlock.stock (sku, initial_qty, on_hand,"
                        " unit_price_minor, currency) VALUES ('A', 1, 1, 1, 'USD')");
    says(&f, 6, "the database already holds stock; seed fills an empty database only",
         SEED, "1");
    holds(&f, 0, "SELECT count(*) FROM users");
}

CASE(seed_if_empty_leaves_a_filled_database_alone)
{
    static const char words[] =
        "seed --if-empty --users 10 --subscriptions 20 --orders 5";

    runs(&f, 0, "%s", words);
    says(&f, 0, "already holds data; nothing was seeded", "%s", words);
    holds(&f, 10, "SELECT count(*) FROM users");
}

CASE(largest_seed_and_no_rows_are_numbers_like_others)
{
    runs(&f, 0, "seed --users 3 --subscriptions 40 --skus 1 --orders 60 --seed %s",
         "9223372036854775807");
    holds(&f, 60, "SELECT count(*) FROM order_lines");
    holds(&f, 0, "SELECT count(*) FROM orders WHERE placed_at > now()");
}

CASE(seeds_at_once_seed_once)
{
    struct fixture_child children[3];
    int won = 0;

    for (int i = 0; i < 3; i++)
        fixture_spawn(&f, &children[i], "seed", "--users", "500", "--subscriptions",
                      "2000", NULL);
    for (int i = 0; i < 3; i++) {
        int code = fixture_wait(&children[i], 120, NULL);

        assert_true(code == 0 || code == 6);
        won += code == 0;
    }
    assert_int_equal(won, 1);
    holds(&f, 500, "SELECT count(*) FROM users");
}

CASE(seed_with_wrong_words_is_usage)
{
    says(&f, 2, "orders need SKUs", "seed --skus 0");
    says(&f, 2, "--now is not a time", "seed --now tomorrow");
    runs(&f, 2, "seed --users 0");
}

/* ---- how it is spread ---- */

static void seed_one(void)
{
    one_open();
    runs(&f, 0, SEED, "3");
}

/* All look at one world. */
static const struct test_group seeded = {.start = seed_one, .stop = one_close};

#define LATE                                                                                          \
    "LATERAL (SELECT period_start(anchor_at, unit, every, k) AS at FROM generate_series(0, 40) AS k)" \
    " AS p WHERE at <= '" NOW "' AND (cancel_at IS NULL OR at < cancel_at)"

/* clang-format off */
static const struct {
    const char *name;
    int least, most;
    const char *sql;
} spread[] = {
    {"all_subscriptions", 4000, 4000, "SELECT count(*) FROM subscriptions"},
    {"every_day_of_a_month", 31, 31, "SELECT count(DISTINCT extract(day FROM anchor_at)) FROM subscriptions WHERE unit = 'month'"},
    {"days_alike", 60, 103, /* 3,200 over 31 days are 103 each */
     "SELECT min(n) FROM (SELECT count(*) AS n FROM subscriptions WHERE unit = 'month' GROUP BY extract(day FROM anchor_at)) AS d"},
    {"months", 3100, 3300, "SELECT count(*) FROM subscriptions WHERE unit = 'month'"},
    {"weeks", 520, 680, "SELECT count(*) FROM subscriptions WHERE unit = 'week'"},
    {"years", 150, 250, "SELECT count(*) FROM subscriptions WHERE unit = 'year'"},
    {"some_of_the_future", 60, 200, "SELECT count(*) FROM subscriptions WHERE anchor_at > '" NOW "'"},
    {"some_cancelled", 100, 230, "SELECT count(*) FROM subscriptions WHERE cancel_at IS NOT NULL"},
    {"cancelled_between_periods_only", 0, 0, "SELECT count(*) FROM subscriptions WHERE cancel_at IS NOT NULL"
     " AND NOT EXISTS (SELECT FROM generate_series(1, 30) AS k WHERE period_start(anchor_at, unit, every, k) = cancel_at)"},
    {"two_skus_wanted_far_beyond_stock", 2, 2, "SELECT count(*) FROM stock AS s WHERE sku_id <= 2"
     " AND initial_qty * 9 < (SELECT sum(qty) FROM order_lines AS l WHERE l.sku_id = s.sku_id)"},
    {"some_skus_wanted_beyond_stock", 3, 30, "SELECT count(*) FROM stock AS s"
     " WHERE initial_qty < (SELECT sum(qty) FROM order_lines AS l WHERE l.sku_id = s.sku_id)"},
    {"orders_of_one_to_four_lines", 4, 4, "SELECT count(DISTINCT n) FROM"
     " (SELECT count(*) AS n FROM order_lines GROUP BY order_id) AS x WHERE n BETWEEN 1 AND 4"},
    {"totals_that_are_their_lines", 0, 0, "SELECT count(*) FROM orders AS o WHERE total_minor <>"
     " (SELECT sum(qty * unit_price_minor) FROM order_lines AS l WHERE l.order_id = o.order_id)"},
    {"wallets_that_are_their_deposits", 0, 0, "SELECT count(*) FROM users AS u WHERE balance_minor <>"
     " coalesce((SELECT sum(amount_minor) FROM wallet_entries AS t WHERE t.user_id = u.user_id), 0)"},
    {"some_wallets_that_run_dry", 8, 80, "SELECT count(*) FROM users AS u WHERE balance_minor <"
     " (SELECT coalesce(sum(amount_minor), 0) FROM subscriptions AS s, " LATE " AND s.user_id = u.user_id)"},
    {"all_orders_once", 1500, 1500, "SELECT count(*) FROM orders"},
    /* Any client that repeats an order gets it back; another body is refused. */
    {"orders_that_a_client_could_send_again", 0, 0, "SELECT count(*) FROM orders AS o WHERE order_id <>"
     " place_order(user_id, idempotency_key, (SELECT jsonb_agg(jsonb_build_object('sku', sku, 'qty', qty) ORDER BY sku_id)"
     " FROM order_lines JOIN stock USING (sku_id) WHERE order_id = o.order_id))"},
};

/* clang-format on */

CASE_ROWS(seed_makes, spread, .group = &seeded)
{
    assert_in_range(ask(row->sql), row->least, row->most);
}

CASE(seed_says_the_periods_due_and_the_orders_sent_twice, .group = &seeded)
{
    char *at = strstr(said.out, "1500 orders ("), expected[64];
    int sent = 0;

    assert_non_null(at);
    assert_int_equal(sscanf(at, "1500 orders (%d sent twice)", &sent), 1);
    assert_in_range(sent, 40, 120);
    (void)snprintf(expected, sizeof expected,
                   "with %" PRId64 " periods due at 2024-03-15 00:00:00",
                   ask("SELECT count(*) FROM subscriptions, " LATE));
    shows(expected);
}

CASE(seed_lets_new_rows_follow, .group = &seeded)
{
    holds(&f, 801, "INSERT INTO users (currency) VALUES ('USD') RETURNING user_id");
    holds(&f, 500, "SELECT deposit(801, 'USD', 500, '0')");
    holds(
        &f, 1,
        "SELECT place_order(801, 'mine', '[{\"sku\": \"SKU-00001\", \"qty\": 1}]') > 1500");
}
