/* life: what people do to subscriptions, and what a pool then charges. */
#include "tests/lib/steps.h"

GROUP(GROUP_OF_WORLD);

/* State, next period and its time, retries: of subscription 1. */
static const char stands[] =
    "SELECT format('%s %s %s %s', state, next_period_no, to_char(next_due_at AT TIME"
    " ZONE 'UTC', 'MM-DD HH24:MI'), retries) FROM subscriptions WHERE subscription_id"
    " = 1";

/* Number, state, tries and amount of each of its periods. */
static const char periods[] =
    "SELECT string_agg(concat_ws(' ', period_no, state, tries, amount_minor), ', '"
    " ORDER BY period_no) FROM charges WHERE subscription_id = 1";

/* As clients do, at a time of the test. */
static void deposit(const char *key, int64_t amount, const char *at)
{
    (void)world_ask("SELECT deposit(1, 'USD', %" PRId64 ", '%s', '%s')", amount, key,
                    at);
}

/* ---- resume --------------------------------------------------------------- */

static void open_unpaid(void)
{
    world_decline("3600");
    world_run("2024-01-01T10:00:00Z");
    deposit("later", 901, "2024-06-14Z");
    world_expect("unpaid 0 01-01 10:00 2", stands);
}

/* Guarantee: A subscription that is resumed with forgive is charged for the period that
 * is running, and each period that was over has a row that says it was waived. */
CASE(resume_that_forgives_waives_what_is_over)
{
    open_unpaid();
    assert_true(world_ask("SELECT resume_subscription(1, 1, p_at => '2024-06-15Z')"));
    assert_false(world_ask("SELECT resume_subscription(1, 1, p_at => '2024-06-15Z')"));
    world_expect("active 5 06-01 08:00 0", stands);
    world_settle("2024-06-15T00:00:00Z");
    world_expect("0 waived 2 100, 1 waived 0 100, 2 waived 0 100, 3 waived 0 100,"
                 " 4 waived 0 100, 5 captured 1 100",
                 periods);
    world_is(900, "SELECT balance_minor FROM users");
    world_is(1, "SELECT count(*) FROM subscription_journal WHERE event = 'waived'");
}

CASE(resume_that_forgives_tries_the_running_period_again)
{
    open_unpaid();
    assert_true(world_ask("SELECT resume_subscription(1, 1, p_at => '2024-01-20Z')"));
    world_expect("past_due 0 01-20 00:00 2", stands);
    world_settle("2024-01-20T00:00:00Z");
    world_expect("0 captured 3 100", periods);
}

/* The period that ends at that moment is over. */
CASE(resume_that_forgives_at_a_boundary_charges_from_it)
{
    open_unpaid();
    assert_true(
        world_ask("SELECT resume_subscription(1, 1, 'forgive', '2024-02-01 08:00Z')"));
    world_settle("2024-02-01T08:00:00Z");
    world_expect("0 waived 2 100, 1 captured 1 100", periods);
}

CASE(resume_that_forgives_waives_nothing_behind_the_cancellation)
{
    open_unpaid();
    (void)world_text("SELECT cancel_subscription(1, 1, p_at => '2024-02-15Z')");
    assert_true(world_ask("SELECT resume_subscription(1, 1, p_at => '2024-06-15Z')"));
    world_settle("2024-06-15T00:00:00Z");
    world_expect("cancelled 2 03-01 08:00 0", stands);
    world_expect("0 waived 2 100, 1 waived 0 100", periods);
}

/* Guarantee: A subscription that is resumed with bill_all is charged for every period
 * that was left open. */
CASE(resume_that_bills_all_charges_what_is_over)
{
    open_unpaid();
    assert_true(
        world_ask("SELECT resume_subscription(1, 1, 'bill_all', '2024-03-15Z')"));
    world_settle("2024-03-15T00:00:00Z");
    world_expect("0 captured 3 100, 1 captured 1 100, 2 captured 1 100", periods);
}

/* ---- dunning -------------------------------------------------------------- */

/* Guarantee: A deposit makes a past-due subscription that it can pay due at once, and
 * that try is the next one of the schedule. */
CASE(deposit_makes_a_past_due_subscription_due)
{
    world_decline("86400,86400");
    deposit("little", 1, "2024-01-01 12:00Z");
    world_expect("past_due 0 01-01 12:00 1", stands);
    world_audit("2024-01-01T11:59:00Z", NULL);
    world_settle("2024-01-01T12:00:00Z");
    world_expect("0 captured 2 100", periods);
}

/* Small deposits must not use up the schedule. */
CASE(deposit_that_is_too_small_uses_up_no_try)
{
    world_decline("86400");
    world_subscription(2, 1, 98, "2024-01-01 08:00Z");
    world_run("2024-01-01T09:30:00Z");
    deposit("one", 1, "2024-01-01 12:00Z");
    world_expect("past_due 0 01-02 09:00 1", stands);
    deposit("rest", 98, "2024-01-01 13:00Z");
    world_expect("past_due 0 01-01 13:00 1", stands);
}

CASE(deposit_for_one_of_two_makes_one_of_two_due)
{
    world_decline("86400");
    world_subscription(2, 1, 110, "2024-01-01 08:00Z");
    world_run("2024-01-01T09:30:00Z");
    deposit("for one", 100, "2024-01-01 12:00Z");
    world_is(
        1,
        "SELECT count(*) FROM subscriptions WHERE next_due_at = '2024-01-01 12:00Z'");
    world_settle("2024-01-01T12:00:00Z");
    world_expect("0 captured 2 100", periods);
    world_is(1, "SELECT sum(tries) FROM charges WHERE subscription_id = 2");
}

CASE(deposit_leaves_a_parked_subscription_alone)
{
    world_decline("86400");
    world_do("UPDATE subscriptions SET state = 'parked'");
    deposit("all", 1000, "2024-01-01 12:00Z");
    world_expect("parked 0 01-02 09:00 1", stands);
}

/* Guarantee: When the schedule is used up nothing is tried until somebody resumes the
 * subscription, whatever is deposited. */
CASE(deposit_for_an_unpaid_subscription_makes_nothing_due)
{
    open_unpaid();
    world_is(1000, "SELECT balance_minor FROM users");
    world_settle("2024-06-20T00:00:00Z");
    world_expect("unpaid 0 01-01 10:00 2", stands);
    world_expect("0 declined 2 100", periods);
}

/* ---- terms ----------------------------------------------------------------- */

/* Guarantee: Each period is charged by the terms of that period, also when a pool
 * catches up later. */
CASE(each_period_is_charged_by_its_own_terms)
{
    world_user(1, 10000);
    world_subscription(1, 1, 100, "2024-01-31Z");
    world_subscription(2, 1, 7, "2024-01-31Z");
    (void)world_text(
        "SELECT set_terms(1, 1, 2, 'trio', 3, 80), set_terms(1, 1, 2, 'duo', 2, 80), set_terms(1, 1, 4, 'solo', 1, 90)");
    world_settle("2024-06-15T00:00:00Z");
    world_expect(
        "0 captured 1 100, 1 captured 1 100, 2 captured 1 160, 3 captured 1 160,"
        " 4 captured 1 90",
        periods);
    world_is(10000 - 610 - 35, "SELECT balance_minor FROM users");
}

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

/* ---- free plans and trials ------------------------------------------------- */

/* Guarantee: A free period is captured without a transfer. */
CASE(trial_is_captured_for_nothing_and_then_paid)
{
    world_user(1, 100);
    (void)world_text(
        "SELECT subscribe(1, 'pro', 60, 'USD', 'month', 1, '2024-01-31Z', 2, 'k')");
    (void)world_text(
        "SELECT subscribe(1, 'free', 0, 'USD', 'month', 1, '2024-01-31Z', 0, 'l')");
    world_settle("2024-03-15T00:00:00Z");
    world_is(
        4,
        "SELECT count(*) FROM charges WHERE state = 'captured' AND amount_minor = 0");
    world_is(1, "SELECT count(*) FROM transfers");
    world_settle("2024-05-15T00:00:00Z");
    world_expect("0 captured 1 0, 1 captured 1 0, 2 captured 1 60, 3 declined 1 60",
                 periods);
    world_is(
        4,
        "SELECT count(*) FROM charges WHERE subscription_id = 2 AND state = 'captured'");
    world_is(40, "SELECT balance_minor FROM users");
}

/* ---- pauses and changes ---------------------------------------------------- */

/* Guarantee: A pause skips whole periods, each has a row that says so, and a pool goes
 * on behind it. */
CASE(paused_periods_are_not_charged)
{
    world_user(1, 10000);
    world_subscription(1, 1, 100, "2024-01-31Z");
    world_run("2024-02-01T00:00:00Z");
    world_expect("2024-04-30", "SELECT pause_subscription(1, 1, 2, 1)::date");
    world_settle("2024-05-15T00:00:00Z");
    world_expect("0 captured 1 100, 1 skipped 0 100, 2 skipped 0 100, 3 captured 1 100",
                 periods);
    world_is(9800, "SELECT balance_minor FROM users");
}

CASE(cancelled_now_is_charged_no_more)
{
    world_decline("86400");
    (void)world_text("SELECT cancel_subscription(1, 1, 'now', '2024-01-01 12:00Z')");
    deposit("late", 1000, "2024-01-01 13:00Z");
    world_settle("2024-06-01T00:00:00Z");
    world_expect("cancelled 0 01-02 09:00 1", stands);
    world_expect("0 declined 1 100", periods);
}
