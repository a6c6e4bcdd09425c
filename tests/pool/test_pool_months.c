/* pool months: the partitions that a pool writes into are there when it needs them. */
#include "common/base/clock.h"
#include "tests/lib/hand.h"
#include "tests/lib/runs.h"
#include "tests/lib/session.h"
#include "tests/lib/steps.h"
#include "worker/batch/batch.h"

GROUP(GROUP_OF_WORLD);

#define NOW "2024-08-31T00:00:00Z"

static void open_months(void)
{
    static const struct world_plan plan = {.batch = 10, .poll_ms = 20};

    world_open_as(&plan);
    world_user(1, 1000000);
    world_user(2, 1000000);
    world_subscription(1, 1, 100, "2022-11-30Z");
    world_subscription(2, 2, 100, "2024-02-15Z");
}

/* Guarantee: A pool never stops for a month that is not made yet, whatever its clock,
 * and it is ahead of it. */
CASE(months_come_as_the_clock_moves, .open = open_months)
{
    static const char *const times[] = {"2022-12-01T00:00:00Z", "2024-02-20T00:00:00Z",
                                        "2024-03-01T00:00:00Z", NOW};
    static const int charged[] = {1, 15 + 1, 16 + 1, 22 + 7};

    for (size_t i = 0; i < 4; i++) {
        world_run(times[i]);
        world_is(charged[i], "SELECT count(*) FROM charges");
        assert_int_equal(
            world_ask("SELECT count(*) FROM months, generate_series(0, 2) AS n"
                      " WHERE month = date_trunc('month', date '%.10s') +"
                      " n * interval '1 month'",
                      times[i]),
            3);
    }
    promise_int_equal(world_parked(), 0);
    world_audit(times[3], NULL);
}

/* A pool at work, with nothing left to do. */
static void start(const char *flags)
{
    world_run(NOW);
    pool_start("run %s --now " NOW, flags);
    pool_log_wait(&world.pool, "event=pool.started");
}

static void wait_for_charge(int subscription)
{
    world_wait("SELECT count(*) > 0 FROM ledgerlock.charges WHERE subscription_id = %d",
               subscription);
}

/* Guarantee: A pool whose rows all lack their partition parks nothing, says so once and
 * ends with exit code 9. */
CASE(pool_whose_partitions_are_gone_ends_and_parks_nothing, .open = open_months)
{
    fixture_env("LEDGERLOCK_POOL_GIVE_UP_MS", "1000");
    start("-w 4 --jobs billing");
    world_do("SELECT make_months('2022-05-01Z', '2022-05-01Z'); DROP TABLE "
             "charges_2022_05");
    for (int i = 0; i < 40; i++)
        world_subscription(3 + i, 1 + i % 2, 100, "2022-05-10Z");
    pool_assert_ends(&world.pool, 9);
    pool_logged(1, "event=pool.fault ");
    pool_log_wait(&world.pool, "a month has no partition");
    promise_int_equal(world_parked(), 0);
    world_is(0, "SELECT count(*) FROM charges WHERE subscription_id > 2");
}

/* Guarantee: A month whose partition is gone keeps its own rows waiting alone: the
 * pool says so, and parks nothing. */
CASE(partition_that_is_gone_is_named_and_parks_nothing, .open = open_months)
{
    world_do("SELECT make_months('2022-05-01Z', '2022-05-01Z')");
    start("-w 1 --jobs billing");
    world_do("DROP TABLE charges_2022_05");
    world_subscription(3, 1, 100, "2022-05-10Z");
    pool_log_wait(&world.pool, "a month has no partition");
    world_subscription(4, 2, 100, "2024-08-01Z");
    wait_for_charge(4);
    promise_int_equal(world_parked(), 0);
    assert_int_equal(
        world_ask("SELECT count(*) FROM charges WHERE subscription_id = 3"), 0);
}

/* ---- many at once ---- */

static void open_small_lease(void)
{
    static const struct world_plan plan = {
        .lease_ms = 1000, .batch = 10, .poll_ms = 20};

    world_open_as(&plan);
}

/* Customers that were imported with anchors in 240 months. */
static void add_old_customers(void)
{
    world_do(INTO_USERS "SELECT n, 'USD' FROM generate_series(3, 242) AS n; SELECT"
                        " deposit(n, 'USD', 1000000, '1') FROM generate_series(3, 242)"
                        " AS n; " INTO_SUBSCRIPTIONS
                        "SELECT n, n, 'old', 100, 'USD', at, 'year', at FROM"
                        " generate_series(3, 242) AS n, LATERAL (SELECT timestamptz"
                        " '1999-10-15Z' + n * interval '1 month' AS at) AS t");
}

/* Guarantee: Old customers that are added beside a running pool, in hundreds of months
 * that are not made yet, are charged, however short the lease is, and others meanwhile.
 */
CASE(old_customers_of_hundreds_of_months_are_charged_by_a_running_pool,
     .open = open_small_lease)
{
    int64_t months;

    world_user(1, 1000000);
    world_user(2, 1000000);
    world_subscription(1, 1, 100, "2024-08-01Z");
    start("-w 2 --jobs billing");
    months = world_ask("SELECT count(*) FROM months");
    add_old_customers();
    world_subscription(2, 2, 100, "2024-08-02Z");
    world_wait("SELECT bool_and(next_due_at > '" NOW "') FROM"
               " ledgerlock.subscriptions");
    world_is(0, "SELECT count(*) FROM charges WHERE state <> 'captured'");
    assert_true(world_ask("SELECT count(*) FROM months") - months >= 240);
    promise_int_equal(world_parked(), 0);
    pool_stop();
    world_audit(NOW, NULL);
}

/* Guarantee: A pool that starts over old customers, in hundreds of months that are not
 * made yet, works while they are made. */
CASE(pool_that_starts_over_old_customers_works_while_months_are_made,
     .open = open_small_lease)
{
    PGconn *client;
    int64_t months;

    world_user(1, 1000);
    world_subscription(1, 1, 100, "2024-08-02Z");
    world_do("SELECT make_months('2024-08-01Z', '2024-08-01Z')");
    add_old_customers();
    months = world_ask("SELECT count(*) FROM months");
    client = super_open();
    session_do(client, "BEGIN; LOCK TABLE months IN SHARE ROW EXCLUSIVE MODE");
    pool_start("run -w 2 --jobs billing --now " NOW);
    wait_for_charge(1);
    promise_int_equal(world_ask("SELECT count(*) FROM months"), months);
    PQfinish(client);
    world_wait("SELECT bool_and(next_due_at > '" NOW "') FROM"
               " ledgerlock.subscriptions");
    world_is(0, "SELECT count(*) FROM charges WHERE state <> 'captured'");
    promise_int_equal(world_parked(), 0);
    pool_stop();
    world_audit(NOW, NULL);
}

/* Guarantee: A client that keeps others from making a month stops the rows of that
 * month alone. */
CASE(client_that_holds_the_months_stops_no_row_of_another_month,
     .open = open_small_lease)
{
    PGconn *client;

    world_user(1, 1000);
    world_user(2, 1000);
    world_do("SELECT make_months('2024-08-01Z', '2024-08-01Z')");
    start("-w 1 --jobs billing");
    client = super_open();
    session_do(client, "BEGIN; LOCK TABLE months IN SHARE ROW EXCLUSIVE MODE");
    world_do("BEGIN; " INTO_SUBSCRIPTIONS "SELECT n, n, 'p', 1, 'USD', at, 'year', at"
             " FROM (VALUES (1, timestamptz '2019-01-31Z'), (2, '2024-08-30Z')) AS t"
             " (n, at); COMMIT");
    wait_for_charge(2);
    pool_log_wait(&world.pool, "event=pool.months_not_made");
    world_is(0, "SELECT count(*) FROM charges WHERE subscription_id = 1");
    PQfinish(client);
    wait_for_charge(1);
    promise_int_equal(world_parked(), 0);
}

/* ---- as time passes ---- */

/* Guarantee: Orders of many years need no months: all are served, and no month is made
 * for them. */
CASE(orders_of_many_years_need_no_months)
{
    world_do(INTO_USERS "SELECT n, 'USD' FROM generate_series(1, 12) AS n; SELECT"
                        " deposit(n, 'USD', 100000, '1') FROM generate_series(1, 12) AS"
                        " n");
    world_sku(1, "s", 1000, 100);
    world_do(
        "SELECT place_order(1 + n %% 12, 'k' || n, '[{\"sku\": \"s\", \"qty\": 1}]',"
        " timestamptz '2010-01-15Z' + n * interval '1 month') FROM"
        " generate_series(1, 150) AS n");
    world_runs(0, "run --once --jobs orders --now " NOW);
    world_is(150, "SELECT count(*) FROM orders WHERE state = 'fulfilled'");
    promise_int_equal(world_parked(), 0);
    world_is(0, "SELECT count(*) FROM months WHERE month < '2024-08-01'");
}

/* As if the months from this one on had never been made; nothing was charged in them.
 */
static void forget_months(void)
{
    world_do(
        "SET ledgerlock.repair = on; DO $$ DECLARE t text;"
        " BEGIN FOR t IN SELECT relid FROM pg_partition_tree('charges') WHERE isleaf"
        " LOOP IF right(t, 7) >= to_char(now() AT TIME ZONE 'UTC',"
        " 'YYYY_MM') THEN EXECUTE 'DROP TABLE ' || t; END IF; END LOOP; END $$;"
        " DELETE FROM months WHERE month >= date_trunc('month', now(), 'UTC')::date");
}

#define MONTHS_TO_COME                                                                 \
    "SELECT count(*) FROM months WHERE month >= date_trunc('month', now(), 'UTC')::date"

/* Guarantee: A pool that runs makes the month to come, and the one after it, once an
 * hour: nobody who books first in a month has to make it. */
CASE(months_to_come_are_made_once_an_hour)
{
    HAND h;

    hand_open(&h, 3000);
    forget_months();
    h.s.months_ms = clk_ms();
    months_tend(&h.s);
    world_is(0, MONTHS_TO_COME);
    h.s.months_ms -= 3600 * 1000;
    for (int calls = 0; calls < 3; calls++)
        months_tend(&h.s);
    world_is(3, MONTHS_TO_COME);
}
