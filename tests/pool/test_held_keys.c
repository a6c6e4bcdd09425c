/* held keys: orders behind those whose keys somebody holds are served as placed. */
#include "tests/lib/shop.h"
#include "tests/lib/steps.h"

#define NOW "2024-02-01T00:00:00Z"

WORLD(.lease_ms = 1000);

/* User 2k places an order for the only piece of SKU k, and user 2k + 1 a minute later.
 * Before all of these, users 20000 + 1, 20000 + 4, 20000 + 9 .. order another SKU. */
static void fill_pairs_behind_held(void)
{
    world_do(
        "INSERT INTO users (user_id, currency) SELECT u, 'USD' FROM"
        " generate_series(2, 1001) AS u UNION SELECT 20000 + g * g, 'USD' FROM"
        " generate_series(1, 3000) AS g;"
        " INSERT INTO stock (sku_id, sku, initial_qty, on_hand, unit_price_minor,"
        " currency) SELECT s, 's' || s, n, n, 0, 'USD' FROM (SELECT s, CASE WHEN s ="
        " 501 THEN 9000 ELSE 1 END AS n FROM generate_series(1, 501) AS s) AS t;"
        " INSERT INTO orders (order_id, user_id, idempotency_key, request_hash,"
        " total_minor, currency, placed_at) SELECT user_id, user_id, '1', '', 0, 'USD',"
        " timestamptz '2024-01-01Z' + interval '1 minute' * (user_id %% 2) + interval"
        " '1 day' * (user_id <= 1001)::integer FROM users;"
        " INSERT INTO order_lines (order_id, sku_id, unit_price_minor, qty) SELECT"
        " order_id, least(order_id / 2, 501), 0, 1 FROM orders; ANALYZE");
}

#define EACH_HELD                                                                      \
    "EVAL for\ti=1,3000\tdo\tredis.call(%s,ARGV[1]..(20000+i*i)%s)\tend 0 %suser:"

/* Guarantee: Behind the orders of thousands of held users, the others are served as
 * placed. */
CASE(of_two_orders_for_one_piece_behind_3000_held_users_the_first_is_fulfilled)
{
    fixture_env("LEDGERLOCK_POOL_BATCH", "100");
    fill_pairs_behind_held();
    (void)redis_do(EACH_HELD, "'SET'", ",'x','PX',600000", world.f.prefix);
    pool_start("run --jobs orders --now " NOW);
    world_wait("SELECT count(*) = 0 FROM ledgerlock.orders WHERE state = 'pending' AND"
               " order_id <= 1001");
    world_is(3000, "SELECT count(*) FROM orders WHERE state = 'pending'");
    promise_int_equal(world_ask("SELECT count(*) FROM orders WHERE order_id <= 1001 AND"
                                " (state = 'fulfilled') <> (order_id %% 2 = 0)"),
                      0);
    (void)redis_do(EACH_HELD, "'DEL'", "", world.f.prefix);
}

/* Orders 1 to 30 and 51 to 100 want SKU 1, of which there are 30; those between them
 * want another. */
static void fill_around(void)
{
    world_do(
        "INSERT INTO users (user_id, currency) SELECT u, 'USD' FROM"
        " generate_series(1, 100) AS u;"
        " INSERT INTO stock (sku_id, sku, initial_qty, on_hand, unit_price_minor,"
        " currency) VALUES (1, 's1', 30, 30, 0, 'USD'), (2, 's2', 90, 90, 0, 'USD');"
        " INSERT INTO orders (order_id, user_id, idempotency_key, request_hash,"
        " total_minor, currency, placed_at) SELECT user_id, user_id, '1', '', 0,"
        " 'USD', timestamptz '2024-01-01Z' + interval '1 minute' * user_id FROM users;"
        " INSERT INTO order_lines (order_id, sku_id, unit_price_minor, qty) SELECT"
        " order_id, CASE WHEN order_id BETWEEN 31 AND 50 THEN 2 ELSE 1 END, 0, 1"
        " FROM orders; ANALYZE");
}

/* Guarantee: A key that is free again in the middle of a round goes to the oldest order
 * that wants it. */
CASE(key_that_is_free_again_in_a_round_goes_to_the_oldest_order)
{
    fixture_env("LEDGERLOCK_POOL_BATCH", "50");
    fixture_env("LEDGERLOCK_LOCKS_LEASE_MS", "60000");
    fill_around();
    (void)shop_key("SET", "sku:1", "somebody PX 600000");
    shop_hold("LOCK TABLE stock_movements IN SHARE MODE");
    pool_start("run --jobs orders --now " NOW);
    world_wait(
        "SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        " AND application_name LIKE 'ledgerlock worker%'");
    (void)shop_key("DEL", "sku:1", "");
    shop_let_go();
    world_wait("SELECT count(*) = 0 FROM ledgerlock.orders WHERE state = 'pending'");
    promise_int_equal(
        world_ask("SELECT count(*) FROM orders WHERE (state = 'fulfilled') <> (order_id"
                  " <= 50)"),
        0);
}
