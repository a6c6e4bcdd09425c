/* accounts: users, subscriptions and closed accounts, as a shop and support make them.
 */
#include "tests/lib/client.h"
#include "tests/lib/runs.h"
#include "tests/lib/session.h"

static void prepare(void)
{
    client_open();
    world_do("INSERT INTO users (user_id, currency) VALUES (1, 'USD'), (2, 'USD');"
             "ALTER TABLE users ALTER user_id RESTART WITH 100");
    world_sku(1, "A", 10, 250);
}

WORLD(.role = "ledgerlock_owner", .also = prepare);

/* ---- create_user ---- */

/* Guarantee: A user is made once per name. */
CASE(user_with_the_same_name_is_the_same_user)
{
    int64_t id = ask("SELECT create_user('ann', 'EUR')");

    assert_int_equal(ask("SELECT create_user('ann', 'EUR')"), id);
    assert_int_not_equal(ask("SELECT create_user('bob', 'EUR')"), id);
    refused("LL001", "SELECT create_user('ann', 'USD')");
    refused("LL002", "SELECT create_user('', 'USD')");
    refused("LL002", "SELECT create_user('eve', 'usd')");
    world_expect(
        "2", "SELECT count(*) FROM users WHERE currency = 'EUR' AND balance_minor = 0");
}

/* ---- subscribe ---- */

#define SUBSCRIBE(user, words, key) "SELECT subscribe(" user ", " words ", '" key "')"
/* The same all year, and never too far ahead. */
#define NEXT_YEAR "date_trunc('year', now(), 'UTC') + interval '1 year'"
#define PRO "'pro', 500, 'USD', 'month', 1, " NEXT_YEAR ", 0"

/* Guarantee: A subscription that is made twice under one key is one subscription. */
CASE(subscription_with_the_same_key_is_the_same)
{
    int64_t id = ask(SUBSCRIBE("1", PRO, "k"));

    assert_int_equal(ask(SUBSCRIBE("1", PRO, "k")), id);
    assert_int_not_equal(ask(SUBSCRIBE("2", PRO, "k")), id);
    refused("LL001",
            SUBSCRIBE("1", "'pro', 501, 'USD', 'month', 1, " NEXT_YEAR ", 0", "k"));
    refused("LL001",
            SUBSCRIBE("1", "'pro', 500, 'USD', 'month', 1, " NEXT_YEAR ", 1", "k"));
    refused("LL001", SUBSCRIBE("1", PRO, "another"));
    world_expect(
        "2 500 active t",
        "SELECT concat_ws(' ', count(*), min(amount_minor), min(state), bool_and(next_due_at = " NEXT_YEAR
        "))"
        " FROM subscriptions WHERE terms_from_no IS NULL");
}

/* clang-format off */
static const struct {
    const char *name, *words;
} wrong[] = {
    {"of_nobody",           "9, 'p', 1, 'USD', 'month', 1, now(), 0, 'k'"},
    {"in_another_currency", "1, 'p', 1, 'EUR', 'month', 1, now(), 0, 'k'"},
    {"without_a_plan",      "1, '', 1, 'USD', 'month', 1, now(), 0, 'k'"},
    {"without_a_key",       "1, 'p', 1, 'USD', 'month', 1, now(), 0, ''"},
    {"below_zero",          "1, 'p', -1, 'USD', 'month', 1, now(), 0, 'k'"},
    {"by_the_hour",         "1, 'p', 1, 'USD', 'hour', 1, now(), 0, 'k'"},
    {"every_zero_months",   "1, 'p', 1, 'USD', 'month', 0, now(), 0, 'k'"},
    {"from_long_ago",       "1, 'p', 1, 'USD', 'month', 1, now() - interval '2 days', 0, 'k'"},
    {"from_never",          "1, 'p', 1, 'USD', 'month', 1, 'infinity', 0, 'k'"},
    {"tried_too_long",      "1, 'p', 1, 'USD', 'month', 1, now(), 1001, 'k'"},
};

/* clang-format on */

CASE_ROWS(no_subscription_is, wrong)
{
    char sql[300];

    (void)snprintf(sql, sizeof sql, "SELECT subscribe(%s)", row->words);
    refused("LL002", sql);
    world_expect("0", "SELECT count(*) FROM subscriptions");
}

CASE(trial_is_terms_of_nothing)
{
    (void)ask(SUBSCRIBE("1", "'pro', 500, 'USD', 'month', 1, " NEXT_YEAR ", 2", "k"));
    world_expect("0 0 500",
                 "SELECT string_agg(amount_minor::text, ' ' ORDER BY no) FROM"
                 " generate_series(1, 3) AS no, terms_of((SELECT subscription_id FROM"
                 " subscriptions), no - 1 + (no = 3)::int)");
}

/* ---- close_account ---- */

#define CLOSE "SELECT close_account(1)"

/* Guarantee: An account is closed only when nothing is subscribed, ordered or left in
 * its wallet, and nothing can be booked on it afterwards. */
CASE(account_is_closed_when_nothing_is_left)
{
    int64_t id = ask(SUBSCRIBE("1", PRO, "k"));

    refused("LL003", CLOSE);
    world_do(
        "UPDATE subscriptions SET state = 'cancelled', cancel_at = next_due_at WHERE subscription_id = %" PRId64,
        id);
    (void)ask("SELECT place_order(1, 'k', '[{\"sku\": \"A\", \"qty\": 1}]')");
    refused("LL003", CLOSE);
    world_do(
        "UPDATE orders SET state = 'rejected', reason = 'insufficient_funds', decided_at = placed_at, fence = 1");
    (void)ask("SELECT deposit(1, 'USD', 5, 'k')");
    refused("LL003", CLOSE);
    world_do("UPDATE users SET balance_minor = 0");
    refused("00000", CLOSE);
    refused("00000", CLOSE);
    refused("LL003", "SELECT deposit(1, 'USD', 5, 'l')");
    refused("LL003", "SELECT place_order(1, 'l', '[{\"sku\": \"A\", \"qty\": 1}]')");
    refused("LL003", SUBSCRIBE("1",
                               "'pro', 500, 'USD', 'month', 1, " NEXT_YEAR
                               " + interval '1 day', 0",
                               "l"));
    refused("LL002", "SELECT close_account(9)");
    refused("LL002", "BEGIN ISOLATION LEVEL REPEATABLE READ;" CLOSE);
    refused("LL002", "BEGIN ISOLATION LEVEL SERIALIZABLE;" CLOSE);
    world_expect(
        "1",
        "SELECT count(*) FROM users JOIN closures ON closures.user_id = users.user_id AND at = closed_at");
}

/* Guarantee: An account is not closed over an order that was placed while close_account
 * waited: it refuses every isolation level that would not see it. */
CASE(account_is_not_closed_over_an_order_that_its_snapshot_misses)
{
    PGconn *support = session_open(client);

    session_do(support, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM workers");
    (void)ask("SELECT place_order(1, 'k', '[{\"sku\": \"A\", \"qty\": 1}]')");
    session_refused("LL002", PQexec(support, CLOSE));
    PQfinish(support);
    world_is(0, "SELECT count(*) FROM closures");
}
