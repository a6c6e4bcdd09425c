/* fence: what happens when a lock did not do what a lock should; and a pool that holds
 * no Redis locks, before, after and instead of one that does. */
#include "tests/lib/hand.h"
#include "tests/lib/points.h"
#include "tests/lib/shop.h"
#include "tests/lib/steps.h"
#include "worker/batch/batch.h"

static const char now[] = "2024-01-05T00:00:00Z";

#define IN_AN_HOUR "((extract(epoch FROM clock_timestamp()) + 3600) * 1000000)::bigint"

/* One refused batch of each worker that met the fence: of billing and of orders. */
static void assert_cost_a_batch(void)
{
    assert_in_range(pool_incidents("fenced", ""), 1, 2);
}

/* The fence of user 128; and a token was given above it. */
static void set_ahead(void)
{
    world_do("UPDATE users SET fence = " IN_AN_HOUR " WHERE user_id = 128; CREATE TABLE"
             " ahead AS SELECT fence FROM users WHERE user_id = 128");
}

static void assert_passed(void)
{
    assert_true(world_ask("SELECT u.fence > ahead.fence FROM users AS u, ahead WHERE "
                          "user_id = 128"));
}

/* ---- the fence ----------------------------------------------------------- */

GROUP(.open = hand_world, .end = world_end, .close = world_close);

/* Guarantee: A fence of a wallet that is ahead of Redis' clock costs each worker one
 * batch; the next token is above it. */
CASE(fence_ahead_of_the_clock_costs_one_batch_and_the_work_is_done)
{
    hand_settle_in();
    set_ahead();
    world_settle(now);
    world_expect("6 5 4450 95", hand_done);
    assert_cost_a_batch();
    world_expect("user:128 claim t",
                 "SELECT DISTINCT concat_ws(' ', resource, phase, token < fence) FROM "
                 "lock_incidents, ahead WHERE kind = 'fenced'");
    world_expect("0", "SELECT count(*) FROM lock_incidents WHERE kind <> 'fenced'");
    assert_passed();
}

/* Guarantee: A fence of a SKU that is ahead of Redis' clock costs one batch; the
 * next token is above it. */
CASE(fence_of_stock_ahead_of_the_clock_is_passed_too)
{
    hand_settle_in();
    world_do("UPDATE stock SET fence = " IN_AN_HOUR);
    world_settle(now);
    world_expect("6 5 4450 95", hand_done);
    world_expect("sku:64", "SELECT resource FROM lock_incidents WHERE kind = 'fenced'");
    world_is(1, "SELECT count(*) FROM lock_incidents");
}

/* Guarantee: No younger order is worked before one whose user or SKU has a fence above
 * the token. */
CASE(order_of_a_user_with_a_fence_ahead_of_the_clock_is_not_overtaken)
{
    hand_settle_in();
    world_sku(65, "B", 1, 10);
    world_do("SELECT place_order(64, 'first', '[{\"sku\":\"B\",\"qty\":1}]',"
             " '2024-01-02Z'); SELECT place_order(128, 'second',"
             " '[{\"sku\":\"B\",\"qty\":1}]', '2024-01-03Z'); UPDATE users SET fence ="
             " " IN_AN_HOUR " WHERE user_id = 64");
    world_runs(0, "run --once -w 1 --jobs orders --now %s",
               now); /* billing holds users */
    world_expect("first fulfilled, second rejected",
                 "SELECT string_agg(idempotency_key || ' ' || state, ', ' ORDER BY"
                 " placed_at) FROM orders WHERE idempotency_key <> 'k'");
    assert_cost_a_batch();
    world_settle(now);
}

CASE(tokens_stay_above_a_fence_that_was_met_once)
{
    int64_t met;

    hand_settle_in();
    world_do("UPDATE users SET fence = " IN_AN_HOUR " WHERE user_id = 64");
    world_run(now);
    assert_cost_a_batch();
    met = pool_incidents("fenced", "");
    world_do("UPDATE users SET fence = (SELECT fence FROM users WHERE user_id = 64) "
             "WHERE user_id = 128");
    world_settle("2024-02-05T00:00:00Z");
    assert_int_equal(pool_incidents("fenced", ""), met);
}

/* Guarantee: A row whose fence is more than an hour ahead of the clock waits and is not
 * parked; the rest flows, with tokens of the clock. */
CASE(fence_far_ahead_keeps_its_rows_waiting_and_the_rest_flows)
{
    hand_settle_in();
    world_do("UPDATE users SET fence = " IN_AN_HOUR " + 60000000 WHERE user_id = 128");
    world_runs(7, "run --once -w 1 --now %s", now);
    promise_int_equal(world_parked(), 0);
    assert_cost_a_batch();                          /* told once by each worker */
    assert_int_equal(pool_counter("conflicts"), 0); /* no token is wanted above it */
    world_is(0, "SELECT count(*) FROM users WHERE user_id <> 128 AND fence >="
                " (extract(epoch FROM clock_timestamp()) * 1000000)::bigint");
    world_expect("0", "SELECT count(*) FROM charges WHERE user_id = 128");
    world_expect("6 4", "SELECT concat_ws(' ', (SELECT count(*) FROM charges), (SELECT "
                        "count(*) FROM orders WHERE state = 'fulfilled'))");
    world_do("UPDATE users SET fence = 0 WHERE user_id = 128");
    world_settle(now);
}

/* Guarantee: A worker whose connection to Redis is lost asks for tokens above the
 * fences that refused it before. */
CASE(fence_that_refused_is_known_over_a_new_connection)
{
    struct err e = {0};
    HAND h;

    hand_open(&h, 3000);
    h.s.floor = world_ask("SELECT " IN_AN_HOUR);
    session_close(&h.s);
    h.s.pg = NULL;
    assert_int_equal(session_open_locks(&h.s, &e), 0);
    assert_int_equal(rlock_try(h.s.lock, "user:1", 3000), RLOCK_OK);
    assert_true(rlock_token(h.s.lock) > h.s.floor);
    assert_int_equal(rlock_release(h.s.lock), RLOCK_OK);
}

/* Guarantee: A pool without Redis locks passes a fence that is ahead of the clock, and
 * calls it no incident. */
CASE(database_only_passes_a_fence_ahead_of_the_clock)
{
    hand_settle_in();
    fixture_env("LEDGERLOCK_LOCKS_MODE", "database-only");
    set_ahead();
    world_run(now);
    world_expect("6 5 4450 95", hand_done);
    assert_passed();
    world_is(0, "SELECT count(*) FROM lock_incidents");
    fixture_env("LEDGERLOCK_LOCKS_MODE", NULL);
    world_audit(now, NULL);
}

/* place_order holds key shares of its user and its SKUs until its client commits. */
/* Guarantee: A client that sits idle after `place_order` holds nobody back. */
CASE(client_idle_after_place_order_holds_nobody_back, .close = shop_close)
{
    shop_hold("SELECT place_order(64, 'idle', (SELECT jsonb_agg(jsonb_build_object("
              "'sku', sku, 'qty', 1)) FROM stock), '2024-01-01Z')");
    world_run(now);
    world_expect("5 5 4450 95", hand_done);
}

/* ---- without Redis locks ---- */

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
    fixture_assert_contains(said.err, "no Redis lock is held");
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
    world_settle(now);
    world_expect("5 5 4450 95", hand_done);
    points_close(&points);
    pool_assert_ends(&world.pool, 0);
    world_is(0, "SELECT count(*) FROM lock_incidents");
    world_expect("5 5 4450 95", hand_done);
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
