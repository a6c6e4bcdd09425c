/* overtaken: orders behind younger ones of their bucket, under a load in which the
 * workers' batches really meet over the same SKUs. What is counted here is counted from
 * the tables, in the plainest way. */
#include <jansson.h>

#include "tests/lib/pool_world.h"
#include "tests/lib/world.h"

/* Eight batches, and those that the seven other workers have under way by then. */
enum { MOST = 15 };

/* For each order, the batches that served a younger one of its bucket before it. */
#define BEHIND                                                                         \
    "SELECT o.order_id, count(DISTINCT y.fence) AS n FROM orders AS o"                 \
    " LEFT JOIN orders AS y ON y.bucket = o.bucket AND y.order_id > o.order_id"        \
    " AND y.state <> 'pending' AND (y.fence < o.fence OR o.state = 'pending')"         \
    " GROUP BY o.order_id"

static int64_t most_behind(void)
{
    return world_ask("SELECT max(n) FROM (" BEHIND ") AS b");
}

static int64_t figure(json_t *doc, const char *section, const char *key)
{
    json_t *value = json_object_get(json_object_get(doc, section), key);

    if (!json_is_integer(value))
        fail_msg("no whole number %s.%s", section, key);
    return json_integer_value(value);
}

/* Eight workers and small batches: many batches a bucket. */
static json_t *bench(const char *mode, const char *rows)
{
    json_t *doc;

    fixture_become(&world.f, "ledgerlock_owner");
    fixture_exec(world.owner, "CREATE SCHEMA ledgerlock_bench");
    (void)fixture_run(&world.f, &world.o, "bench", mode, "--rows", rows, "--workers",
                      "8", "--batch", "10", "--json", NULL);
    if (world.o.code != 0)
        fail_msg("exit %d: %s%s", world.o.code, world.o.out, world.o.err);
    doc = json_loads(world.o.out, 0, NULL);
    assert_non_null(doc);
    return doc;
}

static void orders_under_skewed_demand_wait_behind_few_batches(void **state)
{
    json_t *doc = bench("orders", "8000");
    int64_t busy = figure(doc, "counters", "busy");

    (void)state;
    print_message("[   FACTS  ] %d keys busy, most behind %d\n", (int)busy,
                  (int)most_behind());
    assert_true(busy > 100); /* else they did not meet */
    assert_true(figure(doc, "waits", "orders_overtaken") > 10);
    assert_in_range(most_behind(), 1, MOST);
    json_decref(doc);
}

static void bench_says_of_waits_and_waste_what_the_tables_say(void **state)
{
    json_t *doc = bench("orders", "1500");

    (void)state;
    assert_int_equal(figure(doc, "waits", "batches_behind_max"), most_behind());
    assert_int_equal(figure(doc, "waits", "orders_overtaken"),
                     world_ask("SELECT count(*) FROM (" BEHIND ") AS b WHERE n > 0"));
    assert_int_equal(figure(doc, "waits", "batches_behind_p99"),
                     world_ask("SELECT percentile_disc(0.99) WITHIN GROUP (ORDER BY n)"
                               " FROM (" BEHIND ") AS b"));
    assert_int_equal(figure(doc, "waste", "turns"),
                     figure(doc, "waste", "turns_empty") +
                         figure(doc, "waste", "turns_refused") +
                         figure(doc, "result", "commits"));
    json_decref(doc);
}

static void workers_that_meet_over_one_sku_take_turns(void **state)
{
    json_t *doc = bench("hot-sku", "6000");
    int64_t refused = figure(doc, "waste", "turns_refused");
    int64_t turns = figure(doc, "waste", "turns");

    (void)state;
    print_message("[   FACTS  ] %d of %d turns refused\n", (int)refused, (int)turns);
    assert_true(refused > 0); /* else they did not meet */
    assert_true(refused * 3 < turns);
    assert_true(
        json_is_true(json_object_get(json_object_get(doc, "result"), "totals_exact")));
    json_decref(doc);
}

/* ---- one order whose SKU somebody else holds ---- */

/* The first of 900 orders of one bucket wants two SKUs, the others one of them or one
 * of nine that nobody else asks for; user i placed order i. */
static void fill_one_bucket(void)
{
    world_do("INSERT INTO users (user_id, currency, balance_minor)"
             " SELECT i, 'USD', 0 FROM generate_series(1, 900) AS i");
    world_do("INSERT INTO stock (sku_id, sku, initial_qty, on_hand, unit_price_minor,"
             " currency) SELECT 1 + 64 * i, 's' || i, 1000, 1000, 0, 'USD'"
             " FROM generate_series(0, 10) AS i");
    world_do(
        "INSERT INTO orders (order_id, user_id, idempotency_key, request_hash,"
        " total_minor, currency, bucket, placed_at) SELECT i, i, 'k', 'h', 0, 'USD',"
        " 1, '2024-01-01Z' FROM generate_series(1, 900) AS i");
    world_do("INSERT INTO order_lines (order_id, sku_id, unit_price_minor, qty)"
             " SELECT i, 65 + 64 * (i %% 10), 0, 1 FROM generate_series(1, 900) AS i"
             " UNION ALL VALUES (1, 1, 0, 1)");
}

static void hold_sku(bool held)
{
    char command[200], reply[64];

    (void)snprintf(command, sizeof command,
                   held ? "SET %ssku:1 somebody PX 60000" : "DEL %ssku:1",
                   world.f.prefix);
    pool_redis(world.f.redis_url, reply, sizeof reply, command);
}

static int64_t served(void)
{
    return world_ask("SELECT count(*) FROM orders WHERE state <> 'pending'");
}

/* Waits until the bucket stands still; how many are served then. */
static int64_t wait_for_rest(void)
{
    int64_t before = -1, now = served();

    for (int i = 0; i < 60 && (now == 0 || now != before); i++) {
        fixture_pause_ms(500);
        before = now;
        now = served();
    }
    return now;
}

static void order_whose_key_is_held_is_overtaken_by_few_batches(void **state)
{
    struct fixture_child pool;

    (void)state;
    fill_one_bucket();
    hold_sku(true);
    fixture_spawn(&world.f, &pool, "run", "-w", "8", "--once", "--now",
                  "2024-02-01T00:00:00Z", "--batch", "10", NULL);
    assert_in_range(wait_for_rest(), 1, 899); /* it was overtaken, and not by all */
    world_expect("pending", "SELECT state FROM orders WHERE order_id = 1");
    hold_sku(false);
    pool_assert_ends(&pool, 0, 30);
    print_message("[   FACTS  ] most behind %d\n", (int)most_behind());
    assert_in_range(most_behind(), 1, MOST);
    world_expect("900", "SELECT count(*)::text FROM orders WHERE state = 'fulfilled'");
}

#define WORLD(test) cmocka_unit_test_setup_teardown(test, world_open, world_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD(orders_under_skewed_demand_wait_behind_few_batches),
        WORLD(bench_says_of_waits_and_waste_what_the_tables_say),
        WORLD(workers_that_meet_over_one_sku_take_turns),
        WORLD(order_whose_key_is_held_is_overtaken_by_few_batches),
    };

    fixture_need_servers();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
