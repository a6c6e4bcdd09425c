/* periods: every boundary that is charged, against a calendar of our own; how far a
 * pool catches up; and names and rights that it finds. */
#include "tests/lib/calendar.h"
#include "tests/lib/steps.h"
#include "worker/jobs/job.h"

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

/* ---- catching up ---- */

static const char run_at_ten[] =
    "run --once --jobs billing --now 2024-01-11T12:00:00Z --catch-up-max 10";

static void subscribe(int id, const char *unit, const char *anchor)
{
    world_do(INTO_SUBSCRIPTIONS "VALUES (%d, 1, '%d', 1, 'USD', '%s', '%s', '%s')", id,
             id, anchor, unit, anchor);
}

static const char states[] =
    "SELECT string_agg(format('%s %s %s', subscription_id, state, next_period_no), ', '"
    " ORDER BY subscription_id) FROM subscriptions";

/* Guarantee: A subscription with more periods due than billing.catch_up_max is parked,
 * with the number in words, and no other waits for it. */
CASE(subscription_too_far_behind_is_parked_and_says_how_far)
{
    world_user(1, 1000);
    subscribe(1, "day", "2024-01-02Z"); /* 10 due */
    subscribe(2, "day", "2024-01-01Z"); /* 11 */
    subscribe(3, "month", "2023-01-01Z");
    subscribe(4, "year", "2014-06-01Z"); /* 10, the oldest of ten years ago */
    world_runs(8, run_at_ten);
    world_expect("1 active 10, 2 parked 0, 3 parked 0, 4 active 10", states);
    world_expect("subscription 2 has 11 periods due, more than billing.catch_up_max"
                 " (10); raise it, then release it",
                 "SELECT substring(detail FROM 'subscription.*release it') FROM"
                 " lock_incidents WHERE resource = 'subscription:2'");
}

/* Its owner gives up what it is behind: nothing is charged. */
CASE(subscription_too_far_behind_that_is_cancelled_in_the_past_ends)
{
    world_user(1, 1000);
    subscribe(1, "day", "2024-01-01Z");
    world_runs(8, run_at_ten);
    (void)world_text("SELECT cancel_subscription(1, 1, p_at => '2023-12-31Z')");
    (void)world_text("SELECT release_rows('billing', '{1}')");
    world_runs(0, run_at_ten);
    world_expect("1 cancelled 0", states);
}

/* Guarantee: A subscription that was parked because it was too far behind is charged
 * for every period once billing.catch_up_max is raised and it is released. */
CASE(subscription_that_is_released_to_a_higher_limit_is_charged)
{
    world_user(1, 1000);
    subscribe(1, "day", "2024-01-01Z");
    world_runs(8, run_at_ten);
    (void)world_text("SELECT release_rows('billing', '{1}')");
    world_runs(8, run_at_ten);
    world_expect("1 parked 0", states);
    (void)world_text("SELECT release_rows('billing', '{1}')");
    world_runs(
        0, "run --once --jobs billing --now 2024-01-11T12:00:00Z --catch-up-max 11");
    world_expect("1 active 11", states);
}

/* ---- names and rights ---- */

/* The names of all jobs, as a list of SQL; each must be in the schema. */
static void list_names(char *list, size_t size)
{
    size_t at = (size_t)snprintf(list, size, "''");

    for (int i = 0; i < JOB_TYPE_CT; i++) {
        const char *const *names = job_types[i]->constraints;

        assert_non_null(names[0]);
        for (; *names != NULL; names++) {
            if (world_ask("SELECT count(*) FROM pg_constraint WHERE connamespace ="
                          " 'ledgerlock'::regnamespace AND conname = '%s'",
                          *names) == 0)
                fail_msg("no constraint is called %s", *names);
            at += (size_t)snprintf(list + at, size - at, ", '%s'", *names);
        }
    }
}

/* Of an order those of the columns that a batch writes; its time is always finite. */
CASE(constraints_that_park_are_those_of_the_schema)
{
    char list[4096];

    world_do(
        "SELECT make_months('2020-01-01Z', '2020-01-01Z'), close_month('2020-01-01')");
    list_names(list, sizeof list);
    assert_string_equal(
        world_text("SELECT coalesce(string_agg(conname, ' '), '') FROM pg_constraint"
                   " WHERE (conrelid = 'charges'::regclass AND contype IN ('c', 'u',"
                   " 'p') OR conrelid = 'orders'::regclass AND contype = 'c' AND"
                   " conkey && ARRAY(SELECT attnum FROM pg_attribute WHERE attrelid ="
                   " 'orders'::regclass AND attname IN ('state', 'reason', 'skus',"
                   " 'decided_at', 'fence')) AND conname <> 'decided_is_finite') AND"
                   " conname NOT IN (%s)",
                   list),
        "");
}

/* Guarantee: A PostgreSQL that takes no writes is waited for. */
CASE(pool_stays_up_on_a_read_only_server_and_goes_on_when_it_writes)
{
    world_user(1, 1000);
    world_subscription(1, 1, 100, "2024-01-01Z");
    super_do("ALTER DATABASE %s SET default_transaction_read_only = on",
             world.f.database);
    pool_start("run -w 2 --once --now 2024-01-02T00:00:00Z");
    pool_log_wait(&world.pool, "read-only");
    pool_log_wait(&world.pool, "event=pool.postgres_down");
    world_is(0, "SELECT count(*) FROM charges");
    super_do("BEGIN READ WRITE; ALTER DATABASE %s RESET default_transaction_read_only;"
             " COMMIT",
             world.f.database);
    pool_assert_ends(&world.pool, 0);
    pool_logged(0, "pool.worker_died");
    world_is(1, "SELECT count(*) FROM charges");
}

static void stop_writes(void)
{
    super_do("ALTER DATABASE %s SET default_transaction_read_only = on",
             world.f.database);
    super_do("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname ="
             " '%s' AND usename = 'ledgerlock_worker'",
             world.f.database);
}

static void allow_writes(void)
{
    super_do("BEGIN READ WRITE; ALTER DATABASE %s RESET default_transaction_read_only;"
             " COMMIT",
             world.f.database);
}

/* The last token that Redis gave to a batch of this pool. */
static const char *last_token(void)
{
    static char reply[32];
    char command[FIXTURE_URL];

    (void)snprintf(command, sizeof command, "GET %s!last", world.f.prefix);
    pool_redis(world.f.redis_url, reply, sizeof reply, command);
    return reply;
}

/* Guarantee: A pool that finds nothing due says, too, that its PostgreSQL takes no
 * writes, and that it takes them again; it asks for no lock of what falls due
 * meanwhile.
 */
CASE(idle_pool_tells_of_a_server_that_became_read_only)
{
    char before[32];
    unsigned tries;

    world_user(1, 1000);
    world_subscription(1, 1, 100, "2024-01-01Z");
    pool_start("run -w 2 --log-level debug --jobs billing --now 2024-01-02T00:00:00Z");
    world_wait("SELECT count(*) = 1 FROM ledgerlock.charges");
    FIXTURE_AWAIT(world_ask("SELECT count(*) FROM workers") == 2, "no heartbeat");
    stop_writes();
    pool_log_wait(&world.pool, "event=pool.postgres_down");
    pool_log_wait(&world.pool, "read-only");
    (void)snprintf(before, sizeof before, "%s", last_token());
    super_do("BEGIN READ WRITE; INSERT INTO ledgerlock.subscriptions (subscription_id,"
             " user_id, plan, amount_minor, currency, anchor_at, unit, next_due_at)"
             " VALUES (2, 1, 'q', 100, 'USD', '2024-01-01Z', 'month', '2024-01-01Z');"
             " COMMIT");
    tries = pool_log_count(&world.pool, "event=worker.retry");
    FIXTURE_AWAIT(pool_log_count(&world.pool, "event=worker.retry") >= tries + 10,
                  "the workers do not try to come back");
    assert_string_equal(last_token(), before);
    allow_writes();
    pool_log_wait(&world.pool, "event=pool.postgres_up");
    world_wait("SELECT count(*) = 2 FROM ledgerlock.charges");
    pool_stop();
}
