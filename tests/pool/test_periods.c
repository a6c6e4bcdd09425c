/* periods: how far a pool catches up; names of constraints, and servers that take no
 * writes. The calendar of periods is told in tests/sql. */
#include "tests/lib/steps.h"
#include "worker/jobs/job.h"

GROUP(GROUP_OF_WORLD);

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

/* Guarantee: A subscription that was parked because it was too far behind is charged
 * for every period once billing.catch_up_max is raised and it is released. */
CASE(subscription_that_is_released_to_a_higher_limit_is_charged)
{
    world_user(1, 1000);
    subscribe(1, "day", "2024-01-01Z");
    for (int i = 0; i < 2; i++) { /* released to the same limit it is parked again */
        world_runs(8, run_at_ten);
        world_expect("1 parked 0", states);
        world_do("SELECT release_rows('billing', '{1}')");
    }
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

static void allow_writes(void)
{
    super_do("BEGIN READ WRITE; ALTER DATABASE %s RESET default_transaction_read_only;"
             " COMMIT",
             world.f.database);
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
    allow_writes();
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
    (void)snprintf(before, sizeof before, "%s",
                   redis_do("GET %s!last", world.f.prefix));
    super_do("BEGIN READ WRITE; INSERT INTO ledgerlock.subscriptions (subscription_id,"
             " user_id, plan, amount_minor, currency, anchor_at, unit, next_due_at)"
             " VALUES (2, 1, 'q', 100, 'USD', '2024-01-01Z', 'month', '2024-01-01Z');"
             " COMMIT");
    tries = pool_log_count(&world.pool, "event=worker.retry");
    FIXTURE_AWAIT(pool_log_count(&world.pool, "event=worker.retry") >= tries + 10,
                  "the workers do not try to come back");
    assert_string_equal(redis_do("GET %s!last", world.f.prefix), before);
    allow_writes();
    pool_log_wait(&world.pool, "event=pool.postgres_up");
    world_wait("SELECT count(*) = 2 FROM ledgerlock.charges");
    pool_stop();
}
