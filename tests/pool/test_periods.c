/* periods: every boundary that is charged, against a calendar of our own. */
#include "tests/lib/calendar.h"
#include "tests/lib/world.h"

GROUP(GROUP_OF_WORLD);

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

CASE(periods_of_every_unit_follow_the_calendar)
{
    static const struct calendar list[] = {
        {2019, 1, 28, 0, 'm', 1},     {2019, 1, 29, 0, 'm', 1},
        {2019, 1, 30, 1, 'm', 1},     {2019, 1, 31, 0, 'm', 1},
        {2020, 1, 28, 0, 'm', 1},     {2020, 1, 29, 3600, 'm', 1},
        {2020, 1, 30, 0, 'm', 1},     {2020, 1, 31, 86399, 'm', 1},
        {2020, 2, 29, 0, 'm', 1},     {2019, 8, 31, 0, 'm', 3},
        {2019, 12, 31, 59, 'm', 2},   {2016, 2, 29, 0, 'y', 1},
        {2011, 2, 28, 0, 'y', 1},     {2004, 2, 29, 0, 'y', 4},
        {2021, 3, 1, 45000, 'w', 1},  {2020, 1, 1, 0, 'w', 2},
        {2022, 10, 20, 7200, 'd', 1}, {2020, 2, 20, 0, 'd', 10},
    };

    bill_calendars(list, sizeof list / sizeof list[0], "2023-02-01T00:00:00Z",
                   calendar_seconds(2023, 2, 1));
    assert_true(world_ask("SELECT bool_and(next_period_no >= 36) FROM subscriptions "
                          "WHERE subscription_id <= 8"));
}

CASE(periods_across_a_century_year_have_no_leap_day)
{
    static const struct calendar list[] = {
        {1898, 1, 28, 0, 'm', 1}, {1898, 1, 29, 0, 'm', 1}, {1898, 1, 30, 0, 'm', 1},
        {1898, 1, 31, 0, 'm', 1}, {1896, 2, 29, 0, 'y', 1},
    };

    bill_calendars(list, sizeof list / sizeof list[0], "1901-01-31T00:00:00Z",
                   calendar_seconds(1901, 1, 31));
}

/* In every zone of the session the offset and the name of UTC tell the same. */
CASE(period_start_is_the_same_by_offset_and_by_name)
{
    world_do(
        "SET timezone TO 'America/Sao_Paulo'; DO $$ BEGIN IF (SELECT bool_and("
        "period_start(at, unit, every, no) = (at AT TIME ZONE 'UTC' + no * every * ('1 "
        "' || unit)::interval) AT TIME ZONE 'UTC') AND count(*) > 40000 FROM "
        "generate_series(timestamptz '1999-12-31 23:59:59.999999Z', '2005-01-01Z', "
        "interval '31 hours') AS at, unnest(ARRAY['day', 'week', 'month', 'year']) AS "
        "unit, unnest(ARRAY[1, 7]) AS every, unnest(ARRAY[0, 1, 13, 1001]) AS no) IS "
        "NOT true THEN RAISE 'they differ'; END IF; END $$");
}
