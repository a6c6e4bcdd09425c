/* months: a pool makes the months that it writes into, also when its clock is far
 * ahead, and says in words when one is gone. */
#include "tests/lib/pool_world.h"
#include "tests/lib/steps.h"
#include "tests/lib/world.h"

#define NOW "2024-08-31T00:00:00Z"

static void fill(void)
{
    world_user(1, 1000000);
    world_user(2, 1000000);
    world_subscription(1, 1, 100, "2022-11-30Z");
    world_subscription(2, 2, 100, "2024-02-15Z");
}

WORLD(.batch = 10, .poll_ms = 20, .also = fill);

/* Guarantee: A pool never stops for a month that is not made yet, whatever its clock,
 * and it is ahead of it. */
CASE(months_come_as_the_clock_moves)
{
    static const char *const times[] = {"2022-12-01T00:00:00Z", "2024-02-20T00:00:00Z",
                                        "2024-03-01T00:00:00Z", NOW};
    static const int charged[] = {1, 15 + 1, 16 + 1, 22 + 7};

    for (size_t i = 0; i < 4; i++) {
        world_run(times[i]);
        assert_int_equal(world_ask("SELECT count(*) FROM charges"), charged[i]);
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
static void start(void)
{
    world_run(NOW);
    fixture_spawn(&world.f, &world.pool, "run", "-w", "1", "--jobs", "billing", "--now",
                  NOW, NULL);
    pool_log_wait(&world.pool, "event=pool.started");
}

static void wait_for_charge(int subscription)
{
    char sql[96];

    (void)snprintf(sql, sizeof sql,
                   "SELECT count(*) > 0 FROM ledgerlock.charges WHERE"
                   " subscription_id = %d",
                   subscription);
    world_wait(sql);
}

/* No insert of a subscription makes a month. */
CASE(month_of_an_old_row_is_made_when_it_is_needed)
{
    start();
    world_subscription(3, 2, 100, "2019-01-31Z");
    wait_for_charge(3);
    pool_log_wait(&world.pool, "event=pool.months_made");
    promise_int_equal(world_parked(), 0);
}

/* Guarantee: A pool whose rows all lack their partition parks nothing, says so once and
 * ends with exit code 9. */
CASE(pool_whose_partitions_are_gone_ends_and_parks_nothing)
{
    fixture_env("LEDGERLOCK_POOL_GIVE_UP_MS", "1000");
    fixture_env("LEDGERLOCK_POOL_ORDERS_ORDER", "any");
    world_run(NOW);
    fixture_spawn(&world.f, &world.pool, "run", "-w", "4", "--now", NOW, NULL);
    pool_log_wait(&world.pool, "event=pool.started");
    world_do("SELECT make_months('2022-05-01Z', '2022-05-01Z'); DROP TABLE "
             "charges_2022_05, stock_movements_2024_01");
    world_sku(1, "S", 100, 1);
    for (int i = 0; i < 40; i++) {
        char key[8];

        (void)snprintf(key, sizeof key, "%d", i);
        (void)world_order(1 + i % 2, key, "[{\"sku\": \"S\", \"qty\": 1}]");
        world_subscription(3 + i, 1 + i % 2, 100, "2022-05-10Z");
    }
    pool_assert_ends(&world.pool, 9);
    pool_logged(1, "event=pool.fault ");
    pool_log_wait(&world.pool, "a month has no partition");
    promise_int_equal(world_parked(), 0);
    world_is(0, "SELECT count(*) FROM charges WHERE subscription_id > 2");
    world_is(40, "SELECT count(*) FROM orders WHERE state = 'pending'");
}

/* Guarantee: A month whose partition is gone keeps its own rows waiting alone: the
 * pool says so, and parks nothing. */
CASE(partition_that_is_gone_is_named_and_parks_nothing)
{
    world_do("SELECT make_months('2022-05-01Z', '2022-05-01Z')");
    start();
    world_do("DROP TABLE charges_2022_05");
    world_subscription(3, 1, 100, "2022-05-10Z");
    pool_log_wait(&world.pool, "a month has no partition");
    world_subscription(4, 2, 100, "2024-08-01Z");
    wait_for_charge(4);
    promise_int_equal(world_parked(), 0);
    assert_int_equal(
        world_ask("SELECT count(*) FROM charges WHERE subscription_id = 3"), 0);
}
