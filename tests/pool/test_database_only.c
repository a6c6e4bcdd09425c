/* database only: a pool that holds no Redis locks, before, after and instead of one
 * that does. */
#include "tests/lib/hand.h"
#include "tests/lib/meet.h"
#include "tests/lib/points.h"
#include "tests/lib/steps.h"
#include "worker/batch/batch.h"

static const char now[] = "2024-01-05T00:00:00Z";

GROUP(.open = hand_world, .end = world_end, .close = world_close);

static void open_without_redis(void)
{
    fixture_env("LEDGERLOCK_LOCKS_MODE", "database-only");
    fixture_env("LEDGERLOCK_REDIS_URL", "unix:///nowhere/redis.sock");
}

/* Guarantee: A pool without Redis locks needs no Redis, and the log says that there
 * are no locks. */
CASE(database_only_works_without_redis_and_says_so)
{
    open_without_redis();
    world_run(now);
    fixture_assert_contains(world.o.err, "no Redis lock is held");
    world_expect("5 5 4450 95", hand_done);
    world_audit(now, NULL);
}

CASE(run_with_locks_after_database_only_goes_on)
{
    hand_settle_in();
    fixture_env("LEDGERLOCK_LOCKS_MODE", "database-only");
    world_run(now);
    world_expect("6 5 4450 95", hand_done);
    fixture_env("LEDGERLOCK_LOCKS_MODE", NULL);
    world_run("2024-02-05T00:00:00Z");
    world_is(5, "SELECT count(*) FROM charges WHERE period_no = 1 AND "
                "subscription_id <= 5");
    /* A machine that is busy may lose a lease, but no token is behind. */
    assert_string_equal(
        world_text("SELECT coalesce(string_agg(kind || ' ' || phase || "
                   "' ' || detail, '; '), '') FROM lock_incidents WHERE "
                   "kind <> 'lost'"),
        "");
    world_audit("2024-02-05T00:00:00Z", NULL);
}

/* Guarantee: A batch without Redis locks that another one overtakes is no incident: its
 * rows count as busy. */
CASE(batch_that_is_overtaken_without_locks_is_no_incident)
{
    struct points points;

    open_without_redis();
    points_program();
    points_open(&points);
    pool_start("run --once -w 1 --jobs billing --now %s", now);
    (void)points_join(&points, 60);
    while (strcmp(points.workers[0].at, "after_lock") != 0)
        (void)points_step(&points, 0);
    points_as_shipped();
    world_run(now);
    world_expect("5 5 4450 95", hand_done);
    points_close(&points);
    pool_assert_ends(&world.pool, 0);
    assert_int_equal(world_ask("SELECT count(*) FROM lock_incidents"), 0);
    world_expect("5 5 4450 95", hand_done);
    world_audit(now, NULL);
}

/* An in-doubt COMMIT is looked up by its token: no two batches have the same. */
CASE(tokens_without_redis_are_never_given_twice)
{
    static struct hand hands[2];
    int64_t last = 0, ahead = world_ask("SELECT ((extract(epoch FROM clock_timestamp())"
                                        " + 3600) * 1000000)::bigint");
    struct err e = {0};

    hand_open(&hands[0], 10000);
    hand_open(&hands[1], 10000);
    batch_raise_floor(&hands[0].s, ahead);
    for (size_t i = 0; i < 200; i++) {
        assert_int_equal(batch_take_token(&hands[i % 2].s, &e), 0);
        assert_true(hands[i % 2].s.attempt.token > last);
        last = hands[i % 2].s.attempt.token;
    }
    assert_true(last > ahead);
    session_close(&hands[0].s);
    session_close(&hands[1].s);
}

/* Wallets that last and orders of one unit: whoever is first, the totals are the same.
 */
static void plant_crowd(void)
{
    world_do(
        "INSERT INTO users (user_id, currency) SELECT n, 'USD' FROM "
        "generate_series(1, 400) AS n; SELECT deposit(n, 'USD', 100000, '1') FROM "
        "generate_series(1, 400) AS n; INSERT INTO subscriptions (user_id, plan, "
        "amount_minor, currency, anchor_at, unit, next_due_at) SELECT n, 'p' || p, "
        "100 + p, 'USD', at, 'week', at FROM generate_series(1, 400) AS n, "
        "generate_series(1, 2) AS p, (VALUES ('2023-12-01Z'::timestamptz)) AS t "
        "(at); INSERT INTO stock (sku_id, sku, initial_qty, on_hand, "
        "unit_price_minor, currency) SELECT 64 * n, 'S' || n, 20 * n, 20 * n, n, "
        "'USD' FROM generate_series(1, 8) AS n; SELECT place_order(n, 'k' || k, "
        "jsonb_build_array(jsonb_build_object('sku', 'S' || 1 + (n * k) %% 8, "
        "'qty', 1)), '2024-01-01Z') FROM generate_series(1, 400) AS n, "
        "generate_series(1, 3) AS k");
}

static void run_crowd(const char *workers)
{
    plant_crowd();
    fixture_env("LEDGERLOCK_POOL_ORDERS_ORDER", "any");
    meet_begin();
    world_run_pool(workers, now);
    meet_assert("billing");
    meet_assert("orders");
}

/* Guarantee: A pool without Redis locks has the totals of a pool with them, also while
 * its workers meet. */
CASE(database_only_with_eight_workers_has_the_totals_of_a_run_with_locks,
     .open = world_open)
{
    char with_locks[1024];

    run_crowd("4");
    (void)snprintf(with_locks, sizeof with_locks, "%s", world_totals());
    world_close();
    world_open();
    open_without_redis();
    run_crowd("8");
    promise_string_equal(world_totals(), with_locks);
    world_is(800 * 6, "SELECT count(*) FROM charges");
    world_is(0, "SELECT count(*) FROM lock_incidents WHERE kind = 'parked'");
    world_audit(now, NULL);
}
