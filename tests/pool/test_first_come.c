/* first come: a pool serves orders as if one after the other, in the order in which
 * they were placed. The shop is drawn from a seed: few SKUs that most want, too little
 * of them, poor users, orders of up to four lines, and ids that say nothing of the
 * order. */
#include "tests/lib/gate.h"
#include "tests/lib/oracle.h"
#include "tests/lib/session.h"
#include "tests/lib/shop.h"
#include "tests/lib/steps.h"

#define NOW "2024-02-01T00:00:00Z"

/* Lines of orders. draw: a number from 0 to n - 1 that depends on x, a salt and the
 * seed. */
static void draw_lines(int orders, int seed)
{
    world_do("CREATE SCHEMA drawn; CREATE FUNCTION drawn.draw(x bigint, salt bigint,"
             " n bigint) RETURNS bigint LANGUAGE sql AS"
             " 'SELECT (hashint8extended(x, salt + %d) & 1048575) %% n';"
             " CREATE TABLE drawn.lines AS SELECT o AS order_id,"
             " 1 + drawn.draw(o, 1, 60) AS user_id, timestamptz '2024-01-01Z' +"
             " interval '1 minute' * drawn.draw(o, 2, %d) AS placed_at,"
             " 1 + floor((drawn.draw(o * 8 + l, 3, 900) / 900.0) ^ 3 * 30) AS sku,"
             " 1 + drawn.draw(o * 8 + l, 4, 5) AS qty,"
             " drawn.draw(o * 8 + l, 5, 2) AS extra"
             " FROM generate_series(1, %d) AS o,"
             " generate_series(1, 1 + drawn.draw(o, 6, 4)) AS l",
             seed, orders / 3, orders);
}

/* Stock for two fifths of it; every ninth user has hardly any money, others for all. */
static void fill(int orders, int seed)
{
    draw_lines(orders, seed);
    world_do(
        INTO_USERS
        "SELECT u, 'USD' FROM generate_series(1, 60) AS u; " INTO_STOCK
        "SELECT s, 's' || s, n, n, s %% 7, 'USD' FROM (SELECT s, (SELECT"
        " coalesce(sum(qty), 0) * 4 / 10 FROM drawn.lines WHERE sku = s) AS n FROM"
        " generate_series(1, 30) AS s) AS t; " INTO_ORDERS "SELECT order_id,"
        " min(user_id), order_id, '', sum(qty * (sku %% 7 + extra)), 'USD',"
        " min(placed_at) FROM drawn.lines GROUP BY order_id; " INTO_LINES "SELECT"
        " order_id, sku, sku %% 7 + extra, sum(qty) FROM drawn.lines GROUP BY 1, 2,"
        " 3; SELECT deposit(user_id, 'USD', 1 + sum(total_minor)::bigint * (user_id"
        " %% 9) / 8, '1', '2020-01-01Z') FROM orders GROUP BY user_id; ANALYZE");
}

WORLD(.lease_ms = 1000);

static void assert_served(void)
{
    int64_t all = world_ask("SELECT count(*) FROM orders");

    /* A shop in which all or nothing is sold would prove little. */
    assert_in_range(oracle_assert_served(), all / 8, all * 7 / 8);
    assert_true(world_ask("SELECT count(DISTINCT reason) FROM orders") == 2);
    world_audit(NOW, NULL);
}

static const struct {
    const char *name, *batch;
    int orders;
} batches[] = {{"one", "1", 200},
               {"three", "3", 400},
               {"eleven", "11", 1200},
               {"five_hundred", "500", 4000}};

/* Guarantee: A pool serves orders as if one after the other, in the order in which they
 * were placed. */
CASE_ROWS(orders_are_served_as_placed_in_batches_of, batches, .every = 2)
{
    fixture_env("LEDGERLOCK_POOL_BATCH", row->batch);
    fill(row->orders, row->orders);
    oracle_read("false");
    world_run(NOW);
    assert_served();
}

/* ---- several workers ---- */

#define WORKED "FROM workers WHERE (counters ->> 'batches')::bigint > 0"

/* Guarantee: Four workers that serve orders of the same SKUs at once, in any order,
 * sell nothing twice and decide all. */
CASE(orders_in_any_order_are_served_by_four_workers_that_meet)
{
    int orders = 2000;

    fixture_env("LEDGERLOCK_POOL_ORDERS_ORDER", "any");
    fixture_env("LEDGERLOCK_POOL_BATCH", "20");
    for (int tries = 1;; tries++, orders *= 2) {
        fill(orders, 11);
        world_runs(0, "run --once --jobs orders -w 4 --now " NOW);
        world_audit(NOW, NULL);
        promise_int_equal(
            world_ask("SELECT count(*) FROM orders WHERE state = 'pending'"), 0);
        if (world_ask("SELECT count(*) " WORKED) == 4 && pool_counter("busy") >= 100)
            break;
        assert_true(tries < 5);
        world_close();
        world_open();
    }
}

/* The first one's program runs in f. */
static void start_two(const struct fixture *f)
{
    fixture_env("LEDGERLOCK_POOL_BATCH", "20");
    fill(4000, 9);
    oracle_read("o.user_id % 2 = 0");
    gate_shut("user_id % 2 = 0", 1);
    pool_start_in(f, "run --jobs orders --now " NOW);
    world_wait("SELECT count(*) > 100 FROM ledgerlock.orders WHERE state <> 'pending'");
    fixture_env("LEDGERLOCK_POOL_ORDERS_WORKERS", "2");
    starts(&world.f, &world.others, "run --jobs orders --now %s", NOW);
    world_wait("SELECT count(*) = 3 FROM ledgerlock.workers");
    world_wait("SELECT count(*) = 0 FROM ledgerlock.orders WHERE state = 'pending' AND"
               " user_id %% 2 = 1");
    world_wait("SELECT count(*) > 0 FROM ledgerlock.workers WHERE (counters ->>"
               " 'batches')::bigint > 0");
    assert_int_equal(world_ask("SELECT count(DISTINCT pool) " WORKED), 1);
}

/* A batch under way keeps its keys for its lease. */
static void pause_orders(void)
{
    world_do("SELECT pause_job('orders')");
    FIXTURE_AWAIT(pool_lock_keys() == 0, "a key stays");
}

static void finish_by_the_standby(void)
{
    gate_open();
    world_do("SELECT resume_job('orders')");
    world_wait("SELECT count(*) = 0 FROM ledgerlock.orders WHERE state = 'pending'");
    pool_end(&world.others);
    assert_int_equal(world_ask("SELECT count(*) " WORKED), 2);
}

/* Guarantee: Orders are served as placed by one worker of all pools, and by the next
 * that stands by when its pool is killed. */
CASE(standby_of_another_pool_goes_on_when_the_first_is_killed)
{
    pid_t worker;

    start_two(&world.f);
    pause_orders();
    worker = pool_workers(1);
    world_kill(&world.pool);
    (void)kill(worker, SIGKILL); /* it may have ended with its pool */
    finish_by_the_standby();
    assert_served();
}

/* Guarantee: A frozen worker of orders keeps those that stand by from work for ten
 * seconds, or one lease if that is longer. */
CASE(worker_that_is_frozen_gives_way_to_the_standby)
{
    pid_t frozen;

    start_two(&world.f);
    pause_orders();
    frozen = pool_workers(1);
    assert_int_equal(kill(frozen, SIGSTOP), 0);
    finish_by_the_standby();
    assert_int_equal(kill(frozen, SIGCONT), 0);
    assert_served();
}

static const struct {
    const char *name;
    void (*redis)(struct proxy *p, bool on);
} kept[] = {
    {"redis_away", .redis = proxy_refuse},
    {"redis_silent", .redis = proxy_swallow},
};

/* Guarantee: A pool that cannot work for longer than a lease, since it alone has no way
 * to Redis, lets another pool serve the orders, in the order in which they were placed.
 */
CASE_ROWS(standby_goes_on_when_the_first_one_has, kept)
{
    PROXY way = proxy_before(world.f.redis_url);
    struct fixture first = world.f;

    (void)memcpy(first.redis_url, way.url, sizeof way.url);
    start_two(&first);
    pause_orders();
    row->redis(&way, true);
    finish_by_the_standby();
    assert_served();
}

#define KEY_OF_SERVING "hashtextextended('ledgerlock serves orders', 0)"
#define WORKERS_WITH_THE_KEY                                                             \
    "SELECT count(*) = 1 FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE locktype" \
    " = 'advisory' AND granted AND usename = 'ledgerlock_worker' AND objid::bigint ="    \
    " " KEY_OF_SERVING " & 4294967295"

#define SESSION_OF_THE_FIRST                                                           \
    "application_name LIKE 'ledgerlock worker ' || (SELECT min(pool) FROM"             \
    " ledgerlock.workers WHERE (counters ->> 'batches')::bigint > 0) || '.%%'"

/* Guarantee: A worker whose session has ended serves orders no more when another has
 * taken its place. */
CASE(worker_whose_session_has_ended_gives_its_place_up)
{
    char url[FIXTURE_URL];
    PGconn *other;
    pid_t first;

    fixture_env("LEDGERLOCK_POOL_BATCH", "20");
    fill(4000, 9);
    oracle_read("o.user_id % 2 = 0");
    gate_shut("user_id % 2 = 0", 1);
    pool_start("run --jobs orders --now " NOW);
    world_wait("SELECT count(*) = 0 FROM ledgerlock.orders WHERE state = 'pending' AND"
               " user_id %% 2 = 1");
    pause_orders();
    first = pool_workers(1);
    assert_int_equal(kill(first, SIGSTOP), 0);
    super_do("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE"
             " " SESSION_OF_THE_FIRST);
    fixture_url_as(&world.f, "ledgerlock_worker", url, sizeof url);
    other = session_open(url);
    session_do(other, "SELECT pg_advisory_lock(" KEY_OF_SERVING ")");
    assert_int_equal(kill(first, SIGCONT), 0);
    world_wait("SELECT count(*) = 1 FROM pg_stat_activity WHERE " SESSION_OF_THE_FIRST);
    gate_open();
    world_do("SELECT resume_job('orders')");
    pool_assert_stands_by(SESSION_OF_THE_FIRST);
    PQfinish(other);
    world_wait("SELECT count(*) = 0 FROM ledgerlock.orders WHERE state = 'pending'");
    assert_served();
}

/* Guarantee: A login that is no worker, and holds the key by which one worker serves
 * all orders, stops no pool. */
CASE(outsider_who_holds_the_key_of_serving_stops_nobody)
{
    char url[FIXTURE_URL];
    PGconn *outsider;

    fixture_url_as(&world.f, "ledgerlock_reader", url, sizeof url);
    outsider = session_open(url);
    session_do(outsider, "SELECT pg_advisory_lock(" KEY_OF_SERVING ")");
    fill(200, 5);
    pool_start("run --jobs orders --now " NOW);
    world_wait("SELECT count(*) = 0 FROM ledgerlock.orders WHERE state = 'pending'");
    PQfinish(outsider);
    world_wait(WORKERS_WITH_THE_KEY); /* in order again */
}

/* ---- beside a key that somebody holds ---- */

#define WANTS_SKU_1                                                                    \
    "EXISTS (SELECT FROM order_lines AS h WHERE h.order_id = o.order_id AND sku_id = 1)"

static const struct {
    const char *name;
    const char *late; /* the orders that cannot be served meanwhile */
    const char *key;  /* in Redis, or */
    const char *row;  /* locked by a client */
} held[] = {
    {"user_has_its_key_held", "o.user_id = 8", .key = "user:8"},
    {"sku_has_its_row_locked", WANTS_SKU_1,
     .row = "SELECT FROM stock WHERE sku_id = 1 FOR UPDATE"},
};

/* Guarantee: `run --once` beside a pool that gets nowhere ends with exit code 7. */
CASE(once_beside_a_pool_that_serves_and_gets_nowhere_ends)
{
    fill(100, 7);
    (void)shop_key("SET", "user:8", "somebody PX 600000");
    pool_start("run --jobs orders --now " NOW);
    world_wait("SELECT bool_and(user_id = 8) FROM ledgerlock.orders WHERE state ="
               " 'pending'");
    world_runs(7, "run --once --jobs orders --now " NOW);
    fixture_assert_contains(said.out, " due (another pool serves them)");
    (void)shop_key("DEL", "user:8", "");
}

/* Guarantee: A row that one worker left and another worked is not told as left. */
CASE(what_one_worker_left_and_another_worked_is_not_left)
{
    pid_t pids[POOL_CHILDREN];

    fixture_env("LEDGERLOCK_POOL_ORDERS_WORKERS", "2");
    fill(100, 7);
    (void)shop_key("SET", "user:8", "somebody PX 600000");
    pool_start("run --once --jobs orders --now " NOW);
    pool_wait_children(world.pool.pid, 2);
    FIXTURE_AWAIT(pool_children(world.pool.pid, pids) == 1, "no worker has ended");
    (void)shop_key("DEL", "user:8", "");
    pool_assert_ends(&world.pool, 0);
}

/* Guarantee: An order is overtaken only while its user or one of its SKUs is held. */
CASE_ROWS(only_orders_of_the_held_are_overtaken_where_a, held)
{
    fixture_env("LEDGERLOCK_POOL_BATCH", "50");
    fill(800, 7);
    oracle_read(row->late);
    if (row->key != NULL)
        (void)shop_key("SET", row->key, "somebody PX 600000");
    else
        shop_hold(row->row);
    world_runs(7, "run --once --jobs orders --now " NOW);
    assert_int_equal(world_ask("SELECT count(*) FROM orders AS o WHERE (state ="
                               " 'pending') <> (%s)",
                               row->late),
                     0);
    if (row->key != NULL)
        (void)shop_key("DEL", row->key, "");
    else
        shop_let_go();
    world_runs(0, "run --once --jobs orders --now " NOW);
    assert_served();
}

/* Guarantee: An order whose key is held keeps no other waiting, and is worked soon
 * after the key is free: not only when a lease is over. */
CASE(order_whose_key_is_held_is_worked_soon_after_it_is_free)
{
    int64_t free_us;

    fill(300, 3);
    (void)shop_key("SET", "sku:1", "somebody PX 600000");
    pool_start("run --once --jobs orders --now " NOW " --lease-ms 90000");
    world_wait("SELECT count(*) = 0 FROM ledgerlock.orders AS o WHERE (state ="
               " 'pending') <> (EXISTS (SELECT FROM ledgerlock.order_lines AS h WHERE"
               " h.order_id = o.order_id AND sku_id = 1))");
    (void)shop_key("DEL", "sku:1", "");
    free_us =
        world_ask("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint");
    pool_assert_ends(&world.pool, 0);
    /* A token is not below the clock in microseconds: it tells when a batch began. */
    assert_true(world_ask("SELECT min(fence) FROM orders AS o WHERE " WANTS_SKU_1) -
                    free_us <
                30000000);
}
