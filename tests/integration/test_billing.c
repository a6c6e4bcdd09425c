/* billing: periods, wallets, declines, retries and cancellations on a test clock. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/calendar.h"
#include "tests/lib/world.h"

/* ---- periods ------------------------------------------------------------- */

static void plant(int64_t id, const struct calendar *c)
{
    const char *unit = c->unit == 'd'   ? "day"
                       : c->unit == 'w' ? "week"
                       : c->unit == 'm' ? "month"
                                        : "year";

    world_do("INSERT INTO subscriptions (subscription_id, user_id, plan, amount_minor, "
             "currency, anchor_at, unit, every, next_due_at) SELECT %" PRId64
             ", 1, 'plan %" PRId64 "', 10, 'USD', at, '%s', %" PRId64
             ", at FROM to_timestamp(%" PRId64 ") AS at",
             id, id, unit, c->every, calendar_start(c, 0));
}

/* Every boundary that was charged, and what is due next, against our own calendar. */
static void assert_periods(int64_t id, const struct calendar *c, int64_t now)
{
    static char expected[1 << 14];
    int64_t count = calendar_count(c, now);
    size_t n = 0;

    for (int64_t k = 0; k < count; k++)
        n += (size_t)snprintf(expected + n, sizeof expected - n,
                              "%" PRId64 ":%" PRId64 "-%" PRId64 " ", k,
                              calendar_start(c, k), calendar_start(c, k + 1));
    (void)snprintf(expected + n, sizeof expected - n, "next %" PRId64 ":%" PRId64,
                   count, calendar_start(c, count));
    assert_string_equal(
        world_text("SELECT string_agg(period_no || ':' || "
                   "extract(epoch FROM period_start)::bigint || '-' || "
                   "extract(epoch FROM period_end)::bigint, ' ' ORDER BY period_no) || "
                   "' next ' || next_period_no || ':' || "
                   "extract(epoch FROM next_due_at)::bigint FROM subscriptions JOIN "
                   "charges USING (subscription_id) WHERE subscription_id = %" PRId64
                   " GROUP BY next_period_no, next_due_at",
                   id),
        expected);
}

static void
bill_calendars(const struct calendar *list, size_t n, const char *now, int64_t now_s)
{
    /* where the session's time zone counted, days would have 23 and 25 hours */
    world_do("ALTER DATABASE %s SET timezone = 'America/New_York'", world.f.database);
    world_user(1, 100000);
    for (size_t i = 0; i < n; i++)
        plant((int64_t)i + 1, &list[i]);
    world_run(now);
    for (size_t i = 0; i < n; i++)
        assert_periods((int64_t)i + 1, &list[i], now_s);
    world_audit(now, NULL);
}

static void periods_of_every_unit_follow_the_calendar(void **state)
{
    static const struct calendar list[] = {
        {2023, 1, 28, 0, 'm', 1},     {2023, 1, 29, 0, 'm', 1},
        {2023, 1, 30, 1, 'm', 1},     {2023, 1, 31, 0, 'm', 1},
        {2024, 1, 28, 0, 'm', 1},     {2024, 1, 29, 3600, 'm', 1},
        {2024, 1, 30, 0, 'm', 1},     {2024, 1, 31, 86399, 'm', 1},
        {2024, 2, 29, 0, 'm', 1},     {2023, 8, 31, 0, 'm', 3},
        {2023, 12, 31, 59, 'm', 2},   {2020, 2, 29, 0, 'y', 1},
        {2015, 2, 28, 0, 'y', 1},     {2008, 2, 29, 0, 'y', 4},
        {2025, 3, 1, 45000, 'w', 1},  {2024, 1, 1, 0, 'w', 2},
        {2026, 10, 20, 7200, 'd', 1}, {2024, 2, 20, 0, 'd', 10},
    };

    (void)state;
    bill_calendars(list, sizeof list / sizeof list[0], "2027-02-01T00:00:00Z",
                   calendar_seconds(2027, 2, 1));
    assert_true(world_ask("SELECT bool_and(next_period_no >= 36) FROM subscriptions "
                          "WHERE subscription_id <= 8"));
}

static void periods_across_a_century_year_have_no_leap_day(void **state)
{
    static const struct calendar list[] = {
        {2098, 1, 28, 0, 'm', 1}, {2098, 1, 29, 0, 'm', 1}, {2098, 1, 30, 0, 'm', 1},
        {2098, 1, 31, 0, 'm', 1}, {2096, 2, 29, 0, 'y', 1},
    };

    (void)state;
    bill_calendars(list, sizeof list / sizeof list[0], "2101-01-31T00:00:00Z",
                   calendar_seconds(2101, 1, 31));
}

/* Whatever the session's own zone: the offset and the name of UTC tell the same. */
static void period_start_is_the_same_by_offset_and_by_name(void **state)
{
    (void)state;
    world_do(
        "SET timezone TO 'America/Sao_Paulo'; DO $$ BEGIN IF (SELECT bool_and("
        "period_start(at, unit, every, no) = (at AT TIME ZONE 'UTC' + no * every * ('1 "
        "' || unit)::interval) AT TIME ZONE 'UTC') AND count(*) > 40000 FROM "
        "generate_series(timestamptz '1999-12-31 23:59:59.999999Z', '2005-01-01Z', "
        "interval '31 hours') AS at, unnest(ARRAY['day', 'week', 'month', 'year']) AS "
        "unit, unnest(ARRAY[1, 7]) AS every, unnest(ARRAY[0, 1, 13, 1001]) AS no) IS "
        "NOT true THEN RAISE 'they differ'; END IF; END $$");
}

static void catch_up_bills_oldest_first_and_skips_none(void **state)
{
    (void)state;
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

static void period_is_due_at_its_start_and_not_before(void **state)
{
    (void)state;
    world_user(1, 500);
    world_subscription(1, 1, 100, "2024-01-31 12:00:00Z");
    world_run("2024-01-31T11:59:59Z");
    world_expect("active 0 0 0",
                 "SELECT state || ' ' || next_period_no || ' ' || fence || ' ' || "
                 "(SELECT count(*) FROM charges) FROM subscriptions JOIN users USING "
                 "(user_id)");
    world_run("2024-01-31T12:00:00Z");
    assert_int_equal(world_ask("SELECT count(*) FROM charges"), 1);
    assert_int_equal(world_ask("SELECT balance_minor FROM users"), 400);
}

/* ---- wallet -------------------------------------------------------------- */

static const char states[] =
    "SELECT string_agg(subscription_id || ' ' || state || ' ' || next_period_no, ', ' "
    "ORDER BY subscription_id) FROM subscriptions";

static void wallet_for_one_of_two_pays_the_oldest_and_the_other_later(void **state)
{
    (void)state;
    world_user(1, 150);
    world_subscription(1, 1, 100, "2024-01-02Z");
    world_subscription(2, 1, 100, "2024-01-01Z");
    world_run("2024-01-05T00:00:00Z");
    world_expect("1 past_due 0, 2 active 1", states);
    assert_int_equal(world_ask("SELECT balance_minor FROM users"), 50);
    world_deposit(1, 2, 50);
    world_run("2024-01-06T00:00:00Z");
    world_expect("1 active 1, 2 active 1", states);
    assert_int_equal(world_ask("SELECT balance_minor FROM users"), 0);
    world_audit("2024-01-06T00:00:00Z", NULL);
}

static void wallet_too_small_for_one_still_pays_a_smaller_one_behind(void **state)
{
    (void)state;
    world_user(1, 100);
    world_subscription(1, 1, 60, "2024-01-01Z");
    world_subscription(2, 1, 100, "2024-01-02Z");
    world_subscription(3, 1, 30, "2024-01-03Z");
    world_subscription(4, 1, 11, "2024-01-04Z");
    world_run("2024-01-05T00:00:00Z");
    world_expect("1 active 1, 2 past_due 0, 3 active 1, 4 past_due 0", states);
    assert_int_equal(world_ask("SELECT balance_minor FROM users"), 10);
    assert_int_equal(world_ask("SELECT sum(tries) FROM charges"), 4);
}

static void wallet_shared_by_due_ties_pays_the_lowest_number(void **state)
{
    (void)state;
    world_user(1, 100);
    world_subscription(2, 1, 100, "2024-01-01Z");
    world_subscription(1, 1, 100, "2024-01-01Z");
    world_run("2024-01-05T00:00:00Z");
    world_expect("1 active 1, 2 past_due 0", states);
}

static void amounts_near_the_limit_do_not_overflow(void **state)
{
    char code[6];

    (void)state;
    world_user(1, INT64_MAX);
    world_subscription(1, 1, INT64_MAX, "2024-01-01Z");
    world_subscription(2, 1, INT64_MAX, "2024-01-02Z");
    assert_string_equal(
        fixture_sqlstate(world.owner, "SELECT ledgerlock.deposit(1, 2, 1)", code),
        "22003");
    world_run("2024-01-05T00:00:00Z");
    world_expect("1 active 1, 2 past_due 0", states);
    assert_int_equal(world_ask("SELECT balance_minor FROM users"), 0);
    assert_int_equal(world_ask("SELECT count(*) FROM lock_incidents WHERE kind = "
                               "'parked'"),
                     0);
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
    fixture_env("LEDGERLOCK_BILLING_RETRY_AFTER", schedule);
    world_user(1, 99);
    world_subscription(1, 1, 100, "2024-01-01 08:00:00Z");
    world_run("2024-01-01T09:00:00Z");
}

static void decline_is_retried_on_schedule_and_then_given_up(void **state)
{
    (void)state;
    open_declined("1h,2d");
    world_expect("past_due declined 1 01-01 10:00:00", life);
    world_run("2024-01-01T09:59:59Z");
    world_expect("past_due declined 1 01-01 10:00:00", life);
    world_run("2024-01-01T10:00:00Z");
    world_expect("past_due declined 2 01-03 10:00:00", life);
    world_run("2024-01-03T09:59:59Z");
    world_expect("past_due declined 2 01-03 10:00:00", life);
    world_run("2024-01-04T00:00:00Z");
    world_expect("unpaid declined 3 01-03 10:00:00", life);
    assert_int_equal(world_ask("SELECT balance_minor FROM users"), 99);
    world_audit("2024-01-04T00:00:00Z", NULL);
}

static void unpaid_is_charged_nothing_until_resumed(void **state)
{
    (void)state;
    open_declined("1h");
    world_run("2024-01-01T10:00:00Z");
    world_deposit(1, 2, 901);
    world_run("2024-06-01T00:00:00Z");
    world_expect("unpaid declined 2 01-01 10:00:00", life);
    assert_int_equal(world_ask("SELECT balance_minor FROM users"), 1000);
    assert_true(world_ask("SELECT resume_subscription(1, '2024-06-01Z')"));
    world_run("2024-06-01T00:00:00Z");
    world_expect("active captured 3 06-01 08:00:00", life);
    assert_int_equal(world_ask("SELECT balance_minor FROM users"), 500);
    world_audit("2024-06-01T00:00:00Z", NULL);
}

static void resume_without_money_gives_exactly_one_more_try(void **state)
{
    (void)state;
    open_declined("1h");
    world_run("2024-01-01T10:00:00Z");
    assert_true(world_ask("SELECT resume_subscription(1, '2024-02-01Z')"));
    world_expect("past_due declined 2 02-01 00:00:00", life);
    world_run("2024-02-01T00:00:00Z");
    world_expect("unpaid declined 3 02-01 00:00:00", life);
    assert_int_equal(world_ask("SELECT count(*) FROM charges"), 1);
    assert_false(world_ask("SELECT resume_subscription(2)"));
}

static void retry_that_is_paid_turns_the_declined_row_and_goes_on(void **state)
{
    (void)state;
    open_declined("1d");
    world_deposit(1, 2, 201);
    world_run("2024-03-01T07:00:00Z");
    world_expect("active captured 2 03-01 08:00:00", life);
    world_expect("0 captured 2, 1 captured 1",
                 "SELECT string_agg(period_no || ' ' || state || ' ' || tries, ', ' "
                 "ORDER BY period_no) FROM charges");
    assert_int_equal(world_ask("SELECT retries FROM subscriptions"), 0);
    assert_int_equal(world_ask("SELECT balance_minor FROM users"), 100);
    world_audit("2024-03-01T07:00:00Z", NULL);
}

/* ---- cancel -------------------------------------------------------------- */

static void cancel_bills_up_to_the_boundary_and_nothing_from_it_on(void **state)
{
    (void)state;
    world_user(1, 10000);
    world_subscription(1, 1, 100, "2024-01-31Z");
    world_subscription(2, 1, 100, "2024-01-31Z");
    world_do("UPDATE subscriptions SET cancel_at = '2024-04-30Z' WHERE "
             "subscription_id = 1");
    world_do("UPDATE subscriptions SET cancel_at = '2024-04-30 00:00:01Z' WHERE "
             "subscription_id = 2");
    world_run("2025-01-01T00:00:00Z");
    world_expect("1 cancelled 3, 2 cancelled 4", states);
    assert_int_equal(world_ask("SELECT balance_minor FROM users"), 9300);
    world_audit("2025-01-01T00:00:00Z", NULL);
}

static void cancel_by_the_client_ends_with_the_charged_period(void **state)
{
    (void)state;
    world_user(1, 10000);
    world_subscription(1, 1, 100, "2024-01-31Z");
    world_run("2024-02-10T00:00:00Z");
    world_expect("2024-02-29", "SELECT cancel_subscription(1, '2024-02-10Z')::date");
    world_run("2024-02-28T23:59:59Z");
    world_expect("1 active 1", states);
    world_run("2024-02-29T00:00:00Z");
    world_expect("1 cancelled 1", states);
    world_run("2025-01-01T00:00:00Z");
    assert_int_equal(world_ask("SELECT count(*) FROM charges"), 1);
}

static void cancel_while_past_due_still_owes_the_period_that_has_begun(void **state)
{
    (void)state;
    open_declined("1h");
    world_deposit(1, 2, 1000);
    (void)world_text("SELECT cancel_subscription(1, '2024-01-01T12:00:00Z')");
    world_run("2024-02-01T00:00:00Z");
    world_expect("active captured 2 02-01 08:00:00", life);
    world_run("2024-02-01T08:00:00Z");
    world_expect("cancelled captured 2 02-01 08:00:00", life);
    assert_int_equal(world_ask("SELECT balance_minor FROM users"), 999);
    world_audit("2024-02-01T08:00:00Z", NULL);
}

static void cancelled_one_does_not_eat_the_wallet_of_those_behind(void **state)
{
    (void)state;
    world_user(1, 100);
    world_subscription(1, 1, 100, "2024-01-01Z");
    world_subscription(2, 1, 100, "2024-01-02Z");
    (void)world_text("SELECT cancel_subscription(1, '2023-12-31Z')");
    world_run("2024-01-05T00:00:00Z");
    world_expect("1 cancelled 0, 2 active 1", states);
    assert_int_equal(world_ask("SELECT sum(tries) FROM charges"), 1);
}

/* ---- runs ---------------------------------------------------------------- */

static void run_once_with_nothing_due_ends_without_a_pause(void **state)
{
    (void)state;
    fixture_env("LEDGERLOCK_POOL_POLL_MS", "60000");
    world_user(1, 100);
    world_subscription(1, 1, 100, "2024-01-01Z");
    world_run_pool("4", "2023-12-31T00:00:00Z");
    world_expect("1 active 0", states);
    world_expect("0", "SELECT fence FROM users");
}

static void run_again_over_the_same_data_charges_nothing(void **state)
{
    char before[1024];

    (void)state;
    world_do("INSERT INTO users (user_id, currency) SELECT u, 'USD' FROM "
             "generate_series(1, 200) AS u");
    world_do("SELECT deposit(u, 1, 50 * u, '2020-01-01Z') FROM generate_series(1, 200) "
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

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_open, world_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(periods_of_every_unit_follow_the_calendar),
        TEST(periods_across_a_century_year_have_no_leap_day),
        TEST(period_start_is_the_same_by_offset_and_by_name),
        TEST(catch_up_bills_oldest_first_and_skips_none),
        TEST(period_is_due_at_its_start_and_not_before),
        TEST(wallet_for_one_of_two_pays_the_oldest_and_the_other_later),
        TEST(wallet_too_small_for_one_still_pays_a_smaller_one_behind),
        TEST(wallet_shared_by_due_ties_pays_the_lowest_number),
        TEST(amounts_near_the_limit_do_not_overflow),
        TEST(decline_is_retried_on_schedule_and_then_given_up),
        TEST(unpaid_is_charged_nothing_until_resumed),
        TEST(resume_without_money_gives_exactly_one_more_try),
        TEST(retry_that_is_paid_turns_the_declined_row_and_goes_on),
        TEST(cancel_bills_up_to_the_boundary_and_nothing_from_it_on),
        TEST(cancel_by_the_client_ends_with_the_charged_period),
        TEST(cancel_while_past_due_still_owes_the_period_that_has_begun),
        TEST(cancelled_one_does_not_eat_the_wallet_of_those_behind),
        TEST(run_once_with_nothing_due_ends_without_a_pause),
        TEST(run_again_over_the_same_data_charges_nothing),
    };

    fixture_need_servers();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
