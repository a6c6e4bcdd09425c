/* billing: catching up, wallets, declines, retries and cancellations on a test clock.
 */
#include "tests/lib/steps.h"

GROUP(GROUP_OF_WORLD);

/* ---- order and time ------------------------------------------------------- */

/* Guarantee: A subscription that is many periods behind is charged oldest first, and
 * no period is left out. */
CASE(catch_up_bills_oldest_first_and_skips_none)
{
    world_user(1, 500);
    world_subscription(1, 1, 100, "2023-01-31Z");
    world_run("2024-01-15T00:00:00Z");
    world_expect("0,1,2,3,4",
                 "SELECT string_agg(leg::text, ',' ORDER BY xmin::text::bigint) FROM "
                 "transfers WHERE kind = 'charge'");
    world_expect("past_due 5 1", "SELECT state || ' ' || next_period_no || ' ' || "
                                 "retries FROM subscriptions");
    world_expect("5 declined 2023-06-30",
                 "SELECT period_no || ' ' || state || ' ' || period_start::date FROM "
                 "charges ORDER BY period_no DESC LIMIT 1");
}

/* Guarantee: A period is charged from its first microsecond on, and not before. */
CASE(period_is_due_at_its_start_and_not_before)
{
    world_user(1, 500);
    world_subscription(1, 1, 100, "2024-01-31 12:00:00Z");
    world_run("2024-01-31T11:59:59Z");
    world_expect("active 0 0 0",
                 "SELECT state || ' ' || next_period_no || ' ' || fence || ' ' || "
                 "(SELECT count(*) FROM charges) FROM subscriptions JOIN users USING "
                 "(user_id)");
    world_run("2024-01-31T12:00:00Z");
    world_is(1, "SELECT count(*) FROM charges");
    world_is(400, "SELECT balance_minor FROM users");
}

/* ---- wallet -------------------------------------------------------------- */

static const char states[] =
    "SELECT string_agg(subscription_id || ' ' || state || ' ' || next_period_no, ', ' "
    "ORDER BY subscription_id) FROM subscriptions";

CASE(wallet_for_one_of_two_pays_the_oldest_and_the_other_later)
{
    world_user(1, 150);
    world_subscription(1, 1, 100, "2024-01-02Z");
    world_subscription(2, 1, 100, "2024-01-01Z");
    world_run("2024-01-05T00:00:00Z");
    world_expect("1 past_due 0, 2 active 1", states);
    world_is(50, "SELECT balance_minor FROM users");
    world_deposit(1, 2, 50);
    world_run("2024-01-06T00:00:00Z");
    world_expect("1 active 1, 2 active 1", states);
    world_is(0, "SELECT balance_minor FROM users");
    world_audit("2024-01-06T00:00:00Z", NULL);
}

CASE(wallet_too_small_for_one_still_pays_a_smaller_one_behind)
{
    world_user(1, 100);
    world_subscription(1, 1, 60, "2024-01-01Z");
    world_subscription(2, 1, 100, "2024-01-02Z");
    world_subscription(3, 1, 30, "2024-01-03Z");
    world_subscription(4, 1, 11, "2024-01-04Z");
    world_run("2024-01-05T00:00:00Z");
    world_expect("1 active 1, 2 past_due 0, 3 active 1, 4 past_due 0", states);
    world_is(10, "SELECT balance_minor FROM users");
    world_is(4, "SELECT sum(tries) FROM charges");
}

CASE(wallet_shared_by_due_ties_pays_the_lowest_number)
{
    world_user(1, 100);
    world_subscription(2, 1, 100, "2024-01-01Z");
    world_subscription(1, 1, 100, "2024-01-01Z");
    world_run("2024-01-05T00:00:00Z");
    world_expect("1 active 1, 2 past_due 0", states);
}

CASE(amounts_near_the_limit_do_not_overflow)
{
    char code[6];

    world_user(1, INT64_MAX);
    world_subscription(1, 1, INT64_MAX, "2024-01-01Z");
    world_subscription(2, 1, INT64_MAX, "2024-01-02Z");
    assert_string_equal(fixture_sqlstate(world.owner,
                                         "SELECT ledgerlock.deposit(1, 'USD', 1, '2')",
                                         code),
                        "LL002");
    world_run("2024-01-05T00:00:00Z");
    world_expect("1 active 1, 2 past_due 0", states);
    world_is(0, "SELECT balance_minor FROM users");
    world_is(0, "SELECT count(*) FROM lock_incidents WHERE kind = "
                "'parked'");
    world_audit("2024-01-05T00:00:00Z", NULL);
}

/* ---- declines ------------------------------------------------------------ */

/* State, tries, next look at it: the life of subscription 1. */
static const char life[] =
    "SELECT concat_ws(' ', s.state, c.state, tries, to_char(next_due_at AT TIME ZONE "
    "'UTC', 'MM-DD HH24:MI:SS')) FROM subscriptions AS s JOIN charges AS c USING "
    "(subscription_id) WHERE subscription_id = 1 AND period_no = 0";

static void open_declined(const char *schedule)
{
    world_do("INSERT INTO retry_schedules (pauses_s) VALUES ('{%s}')", schedule);
    world_user(1, 99);
    world_subscription(1, 1, 100, "2024-01-01 08:00:00Z");
    world_run("2024-01-01T09:00:00Z");
}

CASE(decline_is_retried_on_schedule_and_then_given_up)
{
    open_declined("3600,172800");
    world_expect("past_due declined 1 01-01 10:00:00", life);
    world_run("2024-01-01T09:59:59Z");
    world_expect("past_due declined 1 01-01 10:00:00", life);
    world_run("2024-01-01T10:00:00Z");
    world_expect("past_due declined 2 01-03 10:00:00", life);
    world_run("2024-01-03T09:59:59Z");
    world_expect("past_due declined 2 01-03 10:00:00", life);
    world_run("2024-01-04T00:00:00Z");
    world_expect("unpaid declined 3 01-03 10:00:00", life);
    world_is(99, "SELECT balance_minor FROM users");
    world_audit("2024-01-04T00:00:00Z", NULL);
}

CASE(resume_without_money_gives_exactly_one_more_try)
{
    open_declined("3600");
    world_run("2024-01-01T10:00:00Z");
    assert_true(
        world_ask("SELECT resume_subscription(1, 1, 'bill_all', '2024-02-01Z')"));
    assert_false(
        world_ask("SELECT resume_subscription(1, 1, 'bill_all', '2024-02-01Z')"));
    world_expect("past_due declined 2 02-01 00:00:00", life);
    world_run("2024-02-01T00:00:00Z");
    world_expect("unpaid declined 3 02-01 00:00:00", life);
    world_is(1, "SELECT count(*) FROM charges");
}

CASE(retry_that_is_paid_captures_the_declined_row_and_goes_on)
{
    open_declined("86400");
    world_deposit(1, 2, 201);
    world_run("2024-03-01T07:00:00Z");
    world_expect("active captured 2 03-01 08:00:00", life);
    world_expect("0 captured 2, 1 captured 1",
                 "SELECT string_agg(period_no || ' ' || state || ' ' || tries, ', ' "
                 "ORDER BY period_no) FROM charges");
    world_is(0, "SELECT retries FROM subscriptions");
    world_is(100, "SELECT balance_minor FROM users");
    world_audit("2024-03-01T07:00:00Z", NULL);
}

/* ---- cancel -------------------------------------------------------------- */

CASE(cancel_bills_up_to_the_boundary_and_nothing_from_it_on)
{
    world_user(1, 10000);
    world_subscription(1, 1, 100, "2024-01-31Z");
    world_subscription(2, 1, 100, "2024-01-31Z");
    world_do("UPDATE subscriptions SET cancel_at = '2024-04-30Z' WHERE "
             "subscription_id = 1");
    world_do("UPDATE subscriptions SET cancel_at = '2024-04-30 00:00:01Z' WHERE "
             "subscription_id = 2");
    world_run("2025-01-01T00:00:00Z");
    world_expect("1 cancelled 3, 2 cancelled 4", states);
    world_is(9300, "SELECT balance_minor FROM users");
    world_audit("2025-01-01T00:00:00Z", NULL);
}

CASE(cancel_while_past_due_still_owes_the_period_that_has_begun)
{
    open_declined("3600");
    world_deposit(1, 2, 1000);
    (void)world_text(
        "SELECT cancel_subscription(1, 1, p_at => '2024-01-01T12:00:00Z')");
    world_run("2024-02-01T00:00:00Z");
    world_expect("active captured 2 02-01 08:00:00", life);
    world_run("2024-02-01T08:00:00Z");
    world_expect("cancelled captured 2 02-01 08:00:00", life);
    world_is(999, "SELECT balance_minor FROM users");
    world_audit("2024-02-01T08:00:00Z", NULL);
}

CASE(cancelled_one_does_not_eat_the_wallet_of_those_behind)
{
    world_user(1, 100);
    world_subscription(1, 1, 100, "2024-01-01Z");
    world_subscription(2, 1, 100, "2024-01-02Z");
    (void)world_text("SELECT cancel_subscription(1, 1, p_at => '2023-12-31Z')");
    world_run("2024-01-05T00:00:00Z");
    world_expect("1 cancelled 0, 2 active 1", states);
    world_is(1, "SELECT sum(tries) FROM charges");
}

/* ---- runs ---------------------------------------------------------------- */

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

    world_do("INSERT INTO users (user_id, currency) SELECT u, 'USD' FROM "
             "generate_series(1, 200) AS u");
    world_do(
        "SELECT deposit(u, 'USD', 50 * u, '1', '2020-01-01Z') FROM generate_series(1, 200) "
        "AS u");
    world_do(
        "INSERT INTO subscriptions (user_id, plan, amount_minor, currency, "
        "anchor_at, unit, next_due_at) SELECT u, 'p' || p, 100 * p, 'USD', at, "
        "'month', at FROM generate_series(1, 200) AS u, generate_series(1, 3) AS p, "
        "LATERAL (SELECT '2024-01-01Z'::timestamptz + u * interval '7 hours') AS "
        "t (at)");
    world_run_pool("4", "2024-06-01T00:00:00Z");
    (void)snprintf(before, sizeof before, "%s", world_totals());
    assert_true(world_ask("SELECT count(*) FROM charges") > 600);
    world_run_pool("4", "2024-06-01T00:00:00Z");
    assert_string_equal(world_totals(), before);
    world_audit("2024-06-01T00:00:00Z", NULL);
}
