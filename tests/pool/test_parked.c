/* parked: a row that breaks one of our own constraints is parked, and no row is where
 * Redis or the workers fail again and again. test_blame has the errors of others. */
#include "tests/lib/points.h"
#include "tests/lib/shop.h"
#include "tests/lib/steps.h"

GROUP(.open = shop_open, .end = world_end, .close = shop_close);

/* ---- what is the row's own ---- */

static const struct {
    const char *name, *sql, *job, *says;
} own[] = {
    {"period_that_is_charged_already",
     "SELECT make_months('2024-01-01Z', '2024-01-01Z');"
     "INSERT INTO charges VALUES (7, 0, 7, '2024-01-01Z', '2024-02-01Z', 100,"
     " 'captured', 1, 0, 'w', '2024-01-01Z')",
     "billing", "one_charge_per_period"},
    {"period_beyond_the_calendar_of_a_whole_number",
     "UPDATE subscriptions SET next_period_no = 9223372036854775000, every = 1000 WHERE"
     " subscription_id = 7",
     "billing", "bigint out of range"},
    /* No row of an order leads to that today. */
    {"check_that_says_so",
     "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE"
     " check_violation USING MESSAGE = 'rejected_has_reason', SCHEMA = 'ledgerlock',"
     " TABLE = 'orders', CONSTRAINT = 'rejected_has_reason'; END $$; CREATE TRIGGER"
     " refuse AFTER UPDATE ON orders FOR EACH ROW WHEN (NEW.order_id = 7 AND NEW.state"
     " = 'fulfilled') EXECUTE FUNCTION refuse()",
     "orders", "rejected_has_reason"},
    {"number_of_pieces_beyond_a_whole_number",
     "INSERT INTO order_lines VALUES (7, 4, 10, 9223372036854775807), (7, 4, 11,"
     " 9223372036854775807)",
     "orders", "bigint out of range"},
};

/* Guarantee: A row that breaks one of our own constraints is parked alone, and `run`
 * ends with exit code 8. */
CASE_ROWS(row_is_parked_for_a, own)
{
    bool is_billing = strcmp(row->job, "billing") == 0;
    char line[256];

    world_do("%s", row->sql);
    (void)shop_run();
    (void)snprintf(
        line, sizeof line,
        "billing: %d charged, 0 declined, 0 planned, 0 cancelled, %d parked, nothing "
        "left; orders: %d fulfilled, 0 rejected, 0 planned, %d parked, nothing left\n",
        200 - is_billing, is_billing, 199 + is_billing, 1 - is_billing);
    assert_string_equal(said.out, line);
    assert_int_equal(said.code, 8);
    assert_int_equal(world_parked(), 2); /* the row, and the incident log says so */
    fixture_assert_contains(world_text("SELECT detail FROM lock_incidents"), row->says);
    assert_null(strstr(said.err, "pool.fault"));
}

/* place_order takes no more than 999 SKUs: the thousandth is put by hand. */
/* Guarantee: An order with more keys than a batch can lock is parked, and the rest
 * flows. */
CASE(order_with_too_many_keys_is_parked_and_the_rest_flows)
{
    world_do(INTO_STOCK "SELECT 1000 + n, 'N' || n, 9, 9, 0, 'USD' FROM"
                        " generate_series(1, 1000) AS n; SELECT place_order(u, 'many',"
                        " (SELECT jsonb_agg(jsonb_build_object('sku', 'N' || n, 'qty',"
                        " 1)) FROM generate_series(1, 999) AS n), " SHOP_FIRST
                        ") FROM generate_series(1, 2) AS u; INSERT INTO order_lines"
                        " SELECT max(order_id), 2000, 0, 1 FROM orders");
    world_runs(8, "run --once -w 1 --jobs orders --now " SHOP_NOW);
    shows("201 fulfilled, 0 rejected, 0 planned, 1 parked, nothing left");
    world_expect("order:2 it needs more keys than one lock call takes",
                 "SELECT replace(resource, max(o.order_id)::text, '2') || ' ' || detail"
                 " FROM lock_incidents, orders AS o WHERE kind = 'parked' GROUP BY"
                 " resource, detail");
}

/* Guarantee: `run --once` that parked a row and left another ends with exit code 8. */
CASE(row_that_is_parked_beside_one_that_is_left_is_told)
{
    world_do("%s", own[0].sql);
    (void)shop_key("SET", "user:9", "other PX 600000");
    world_runs(8, "run --once -w 1 --jobs billing --now " SHOP_NOW);
    fixture_assert_contains(said.out, " 1 parked, left: ");
    (void)shop_key("DEL", "user:9", "");
}

/* ---- no row is at fault ---- */

#define SAID(event, n)                                                                 \
    FIXTURE_AWAIT(pool_log_count(&world.pool, event) >= (unsigned)(n), "no %s for %d", \
                  event, n)

/* Redis is away until the pool has said so, and orders are placed meanwhile. Redis is
 * back until the pool has said that, too. */
static void restart_redis(int i)
{
    fixture_redis_kill(&world.redis);
    world_do("SELECT place_order(g, 'r%d', format('[{\"sku\": \"s%%s\", \"qty\": 1}]',"
             " 1 + g %% 3)::jsonb, '2024-01-01Z') FROM generate_series(1, 20) AS g",
             i);
    SAID("event=pool.redis_down", i);
    pool_redis_start(&world.redis);
    SAID("event=pool.redis_up", i);
}

/* In one look: what a worker commits meanwhile is in both sums. Each order is of one
 * unit. */
static void assert_exact(void)
{
    promise_int_equal(world_ask("SELECT (SELECT count(*) FROM charges WHERE state ="
                                " 'captured') - (SELECT sum(next_period_no)::bigint"
                                " FROM subscriptions)"),
                      0);
    promise_int_equal(world_ask("SELECT (SELECT count(*) FROM orders WHERE state ="
                                " 'fulfilled') - (SELECT sum(initial_qty -"
                                " on_hand)::bigint FROM stock)"),
                      0);
}

/* Eight times; at ten times the size 720 times, as often as in an hour of a restart
 * every five seconds. The test takes no hour: the next restart comes when the pool has
 * worked again after the last. Two years of five subscriptions a user are due, so that
 * each meets work of both jobs. */
/* Guarantee: A Redis that restarts again and again, each time empty, parks nothing, and
 * the pool says each outage and its end once. */
CASE(redis_that_restarts_again_and_again_parks_nothing)
{
    int times = fixture_scale() > 1 ? 72 * fixture_scale() : 8;

    world_do(
        "UPDATE subscriptions SET unit = 'day', anchor_at = anchor_at - interval"
        " '2 years', next_due_at = next_due_at - interval '2 years'; UPDATE users"
        " SET balance_minor = 1000000; INSERT INTO subscriptions (subscription_id,"
        " user_id, plan, amount_minor, currency, anchor_at, unit, next_due_at) SELECT"
        " subscription_id + 1000 * g, user_id, 'x' || g, 100, 'USD', anchor_at, unit,"
        " next_due_at FROM subscriptions, generate_series(1, 4) AS g; ANALYZE");
    pool_redis_start(&world.redis);
    memcpy(world.f.redis_url, world.redis.url, sizeof world.f.redis_url);
    fixture_env("LEDGERLOCK_POOL_BATCH", "2");
    fixture_env("LEDGERLOCK_POOL_ORDERS_ORDER", "any");
    pool_start("run -w 4 --now " SHOP_NOW);
    for (int i = 1; i <= times; i++) {
        pool_work_wait(pool_work_done() + 5);
        restart_redis(i);
    }
    pool_work_wait(pool_work_done() + 5); /* it met work to the end */
    pool_stop();
    promise_int_equal(world_parked(), 0);
    pool_logged(times, "event=pool.redis_down");
    pool_logged(times, "event=pool.redis_up");
    pool_logged(0, "pool.worker_died");
    pool_logged(0, "pool.killed"); /* its COMMIT might come later than the pool's end */
    assert_exact();
}

static const struct {
    const char *name, *point;
} deaths[] = {
    {"are_killed_over_their_rows", "after_claim=kill"},
    {"meet_a_library_that_lacks_a_symbol", "before_lock=exit"},
};

/* Guarantee: Workers that die over everything park nothing and end the pool with exit
 * code 70. */
CASE_ROWS(pool_ends_when_all_workers, deaths)
{
    points_program();
    fixture_env("LL_TEST_POINT", row->point);
    (void)shop_run();
    points_as_shipped();
    assert_int_equal(said.code, 70);
    assert_int_equal(shop_log_count("event=pool.giving_up"), 1);
    promise_int_equal(world_parked(), 0);
    world_is(0, "SELECT count(*) FROM charges");
    world_is(0, "SELECT count(*) FROM orders WHERE state <> 'pending'");
}
