/* billing: runs of a pool that find nothing to do, and debts as report and audit tell
 * them. The rules of billing are told in tests/sql. */
#include "tests/lib/steps.h"

GROUP(GROUP_OF_WORLD);

static const char states[] =
    "SELECT string_agg(subscription_id || ' ' || state || ' ' || next_period_no, ', ' "
    "ORDER BY subscription_id) FROM subscriptions";

CASE(run_once_with_nothing_due_ends_without_a_pause)
{
    fixture_env("LEDGERLOCK_POOL_BILLING_POLL_MS", "60000");
    world_user(1, 100);
    world_subscription(1, 1, 100, "2024-01-01Z");
    world_run_pool("4", "2023-12-31T00:00:00Z");
    world_expect("1 active 0", states);
    world_expect("0", "SELECT fence FROM users");
}

/* Guarantee: A second run over the same rows charges nothing. */
CASE(run_again_over_the_same_data_charges_nothing)
{
    char before[1024];

    world_do(INTO_USERS "SELECT u, 'USD' FROM generate_series(1, 200) AS u");
    world_do(
        "SELECT deposit(u, 'USD', 50 * u, '1', '2020-01-01Z') FROM generate_series(1, 200) "
        "AS u");
    world_do(INTO_ANY_SUBSCRIPTIONS
             "SELECT u, 'p' || p, 100 * p, 'USD', at, 'month', at"
             " FROM generate_series(1, 200) AS u, generate_series(1, 3) AS p, LATERAL"
             " (SELECT '2024-01-01Z'::timestamptz + u * interval '7 hours') AS t (at)");
    world_run_pool("4", "2024-06-01T00:00:00Z");
    (void)snprintf(before, sizeof before, "%s", world_totals());
    assert_true(world_ask("SELECT count(*) FROM charges") > 600);
    world_run_pool("4", "2024-06-01T00:00:00Z");
    assert_string_equal(world_totals(), before);
    world_audit("2024-06-01T00:00:00Z", NULL);
}

/* Number, state, tries and amount of each period of subscription 1. */
static const char periods[] =
    "SELECT string_agg(concat_ws(' ', period_no, state, tries, amount_minor), ', '"
    " ORDER BY period_no) FROM charges WHERE subscription_id = 1";

/* A debt, and a period that is waived, cost by the terms of their own period. */
CASE(debts_and_what_is_waived_cost_what_their_periods_do)
{
    world_decline("3600");
    (void)world_text(
        "SELECT set_terms(1, 1, 1, 'duo', 2, 80), set_terms(1, 1, 3, 'solo', 1, 90)");
    world_run("2024-01-01T10:00:00Z");
    world_audit("2024-04-15T00:00:00Z", NULL);
    world_says(0, "\n2024-02,USD,0.00,0.00,0.00,0.00,0.00,0.99,1.60,0.00\n",
               "report --csv --now 2024-04-15T00:00:00Z");
    world_runs(0, "audit --json --now 2024-04-15T00:00:00Z --lag 9999d");
    fixture_assert_contains(said.out, "\"declined\": 510");
    assert_true(world_ask("SELECT resume_subscription(1, 1, p_at => '2024-04-15Z')"));
    world_settle("2024-04-15T00:00:00Z");
    world_expect("0 waived 2 100, 1 waived 0 160, 2 waived 0 160, 3 captured 1 90",
                 periods);
}
