/* held keys: orders behind those whose keys somebody holds are served as placed; and a
 * lock key without a time to live, which no pool leaves and nothing ends: it is told of
 * once, never broken, and `run --once` does not wait for it for ever; and when a worker
 * that gets no key leaves the place of serving. */
#include "tests/lib/hand.h"
#include "tests/lib/shop.h"
#include "tests/lib/steps.h"
#include "worker/batch/batch.h"

#define NOW "2024-02-01T00:00:00Z"

WORLD(.lease_ms = 1000);

/* User 2k places an order for the only piece of SKU k, and user 2k + 1 a minute later.
 * Before all of these, users 20000 + 1, 20000 + 4, 20000 + 9 .. order another SKU. */
static void fill_pairs_behind_held(void)
{
    world_do(
        INTO_USERS
        "SELECT u, 'USD' FROM generate_series(2, 1001) AS u UNION SELECT"
        " 20000 + g * g, 'USD' FROM generate_series(1, 3000) AS g; " INTO_STOCK
        "SELECT s, 's' || s, n, n, 0, 'USD' FROM (SELECT s, CASE WHEN s = 501 THEN"
        " 9000 ELSE 1 END AS n FROM generate_series(1, 501) AS s) AS t; " INTO_ORDERS
        "SELECT user_id, user_id, '1', '', 0, 'USD', timestamptz '2024-01-01Z' +"
        " interval '1 minute' * (user_id %% 2) + interval '1 day' * (user_id <="
        " 1001)::integer FROM users; " INTO_LINES "SELECT order_id, least(order_id /"
        " 2, 501), 0, 1 FROM orders; ANALYZE");
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
        INTO_USERS
        "SELECT u, 'USD' FROM generate_series(1, 100) AS u; " INTO_STOCK
        "VALUES (1, 's1', 30, 30, 0, 'USD'), (2, 's2', 90, 90, 0, 'USD'); " INTO_ORDERS
        "SELECT user_id, user_id, '1', '', 0, 'USD', timestamptz"
        " '2024-01-01Z' + interval '1 minute' * user_id FROM users; " INTO_LINES
        "SELECT order_id, CASE WHEN order_id BETWEEN 31 AND 50 THEN 2 ELSE 1 END, 0,"
        " 1 FROM orders; ANALYZE");
}

/* Guarantee: A key that is free again in the middle of a round goes to the oldest order
 * that wants it. */
CASE(key_that_is_free_again_in_a_round_goes_to_the_oldest_order)
{
    fixture_env("LEDGERLOCK_POOL_BATCH", "50");
    fixture_env("LEDGERLOCK_LOCKS_LEASE_MS", "60000");
    fill_around();
    (void)shop_key("SET", "sku:1", "somebody PX 600000");
    shop_hold("LOCK TABLE batches IN SHARE MODE");
    pool_start("run --jobs orders --now " NOW);
    world_wait(
        "SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        " AND application_name LIKE 'ledgerlock worker%%'");
    (void)shop_key("DEL", "sku:1", "");
    shop_let_go();
    world_wait("SELECT count(*) = 0 FROM ledgerlock.orders WHERE state = 'pending'");
    promise_int_equal(
        world_ask("SELECT count(*) FROM orders WHERE (state = 'fulfilled') <> (order_id"
                  " <= 50)"),
        0);
}

/* ---- without a time to live ---- */

static const struct pool_work work = {.users = 20, .periods = 2};

WORLD_OPEN(open_due, .lease_ms = 1000, .work = &work)

static void assert_still_there(const char *key)
{
    assert_string_equal(shop_key("PTTL", key, ""), "-1");
    (void)shop_key("DEL", key, "");
}

/* test_liveness shows which rows wait for it, and what the last line says of it. */
/* Guarantee: The command that the log names frees the key, and the rest is worked. */
CASE(once_after_the_named_command_ends_with_all_done, .open = open_due)
{
    (void)shop_key("HSET", "user:3", "a list"); /* whatever type it has */
    world_runs(7, "run --once -w 2 --now %s", pool_work_now());
    fixture_assert_contains(said.err, "event=lock.no_ttl");
    fixture_assert_contains(said.err, "key=user:3 ");
    fixture_assert_contains(said.err, "\"ledgerlock locks release user:3\"");
    world_runs(0, "locks release user:3 --yes");
    world_runs(0, "run --once -w 3 --now %s", pool_work_now());
    pool_work_assert_exact();
}

/* Guarantee: Each worker names such a key once, however long it stays, and the rows are
 * worked when it is gone. */
CASE(worker_says_it_once_and_the_rows_are_worked_when_it_is_gone, .open = open_due)
{
    unsigned times;

    (void)shop_key("SET", "user:3", "leftover");
    pool_start("run -w 2 --jobs billing --now %s", pool_work_now());
    pool_work_wait(pool_work_all() - 2);
    fixture_pause_ms(2500);
    times = pool_log_count(&world.pool, "event=lock.no_ttl");
    assert_in_range(times, 1, 2);
    assert_still_there("user:3");
    pool_work_wait(pool_work_all());
}

/* ---- the place of serving ---- */

/* Guarantee: A worker that can work nothing gives the place of serving up after a lease
 * and not before. */
CASE(place_is_given_up_after_a_lease_without_work)
{
    struct err e = {0};
    HAND h;

    hand_open(&h, 1000);
    h.s.job = &job_orders;
    assert_int_equal(standby_check(&h.s, &e), 0);
    assert_true(h.s.serves);
    assert_false(standby_yield(&h.s, 1000));
    assert_true(h.s.serves);
    assert_true(standby_yield(&h.s, 1001));
    assert_false(h.s.serves);
}
