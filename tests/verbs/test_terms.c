/* terms: what a subscription is and costs from a period on, as support sets it. */
#include "tests/lib/client.h"
#include "tests/lib/runs.h"

static void prepare(void)
{
    client_open();
    world_do("INSERT INTO users (user_id, currency) VALUES (1, 'USD'), (2, 'USD')");
    world_subscription(1, 1, 100, "2024-01-31Z");
    world_do(
        "UPDATE subscriptions SET next_period_no = 1, next_due_at = '2024-02-29Z'");
}

WORLD(.role = "ledgerlock_owner", .also = prepare);

#define SET(sub, from, words) "SELECT set_terms(1, " sub ", " from ", " words ")"

/* Guarantee: Terms change from a period on that was not tried yet, and never for one
 * that was. */
CASE(terms_count_from_their_period_on)
{
    assert_true(ask(SET("1", "3", "'duo', 2, 80") " = timestamptz '2024-04-30Z'"));
    world_expect(
        "100 1 plan 1,100 1 plan 1,160 2 duo,160 2 duo",
        "SELECT string_agg(concat_ws(' ', amount_minor, quantity, plan), ',' ORDER BY"
        " no) FROM generate_series(1, 4) AS no, terms_of(1, no)");
    world_expect("3 100",
                 "SELECT terms_from_no || ' ' || amount_minor FROM subscriptions");
    refused("LL002", SET("1", "0", "'duo', 2, 80"));
    world_do("UPDATE subscriptions SET state = 'past_due', retries = 1");
    refused("LL002", SET("1", "1", "'duo', 2, 80"));
    refused("00000", SET("1", "2", "'duo', 2, 80"));
}

CASE(terms_without_a_period_count_from_the_next_that_is_untried)
{
    refused("00000", SET("1", "NULL", "'duo', 2, 80"));
    world_do("UPDATE subscriptions SET state = 'past_due', retries = 1");
    refused("00000", SET("1", "NULL", "'trio', 3, 80"));
    world_expect("1 duo, 2 trio",
                 "SELECT string_agg(from_period || ' ' || plan, ', ' ORDER BY"
                 " from_period) FROM subscription_terms");
}

CASE(terms_set_again_are_the_same_and_the_last_ones_count)
{
    refused("00000", SET("1", "3", "'duo', 2, 80"));
    refused("00000", SET("1", "3", "'duo', 2, 80"));
    world_expect("1", "SELECT count(*) FROM subscription_terms");
    refused("00000", SET("1", "3", "'duo', 2, 90"));
    refused("00000", SET("1", "2", "'trio', 3, 10"));
    world_expect(
        "2 30 180",
        "SELECT concat_ws(' ', terms_from_no, (SELECT amount_minor FROM terms_of(1, 2)),"
        " (SELECT amount_minor FROM terms_of(1, 3))) FROM subscriptions");
    refused("00000",
            SET("1", "3", "'duo', 2, 80")); /* not again: others came between */
    world_expect("4 160",
                 "SELECT count(*) || ' ' || (SELECT amount_minor FROM terms_of(1, 3))"
                 " FROM subscription_journal WHERE event = 'terms'");
}

CASE(price_keeps_plan_and_quantity_of_its_period)
{
    refused("00000", SET("1", "3", "'duo', 2, 80"));
    refused("00000", "SELECT set_price(1, 1, 4, 70), set_price(1, 1, 2, 50)");
    world_expect("50 plan 1, 160 duo, 140 duo",
                 "SELECT string_agg(amount_minor || ' ' || plan, ', ' ORDER BY no) FROM"
                 " generate_series(2, 4) AS no, terms_of(1, no)");
}

/* clang-format off */
static const struct {
    const char *name, *state, *sql;
} wrong[] = {
    {"of_another_user",     "LL002", "SELECT set_terms(2, 1, 3, 'p', 1, 1)"},
    {"price_of_another",    "LL002", "SELECT set_price(2, 1, 3, 1)"},
    {"price_for_no_period", "LL002", "SELECT set_price(1, 1, NULL, 1)"},
    {"of_nothing",          "LL002", SET("9", "3", "'p', 1, 1")},
    {"without_a_plan",      "LL002", SET("1", "3", "'', 1, 1")},
    {"of_no_units",         "LL002", SET("1", "3", "'p', 0, 1")},
    {"below_zero",          "LL002", SET("1", "3", "'p', 1, -1")},
    {"beyond_64_bits",      "LL002", SET("1", "3", "'p', 2, 4611686018427387904")},
    {"just_in_64_bits",     "00000", SET("1", "3", "'p', 1, 9223372036854775807")},
    {"too_far_ahead",       "LL002", SET("1", "1002", "'p', 1, 1")},
    {"free",                "00000", SET("1", "1001", "'p', 1, 0")},
};

/* clang-format on */

CASE_ROWS(terms_that_are, wrong)
{
    refused(row->state, row->sql);
}

CASE(terms_of_a_cancelled_subscription_are_refused)
{
    world_do("UPDATE subscriptions SET state = 'cancelled', cancel_at = next_due_at");
    refused("LL003", SET("1", "3", "'duo', 2, 80"));
}
