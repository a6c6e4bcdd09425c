/* The ways to the servers are bad: answers late and at random, in single bytes, a
 * thousand bytes a second, reset; and all of several pools clogged one after the other.
 * Slower, and right. */
#include "tests/lib/fault.h"
#include "tests/lib/gate.h"
#include "tests/lib/meet.h"
#include "tests/lib/steps.h"

FAULT_WORLD(.load = &fault_usual);

/* Asserts that it was met so often on both ways. */
static void assert_met(enum proxy_count count, unsigned n)
{
    assert_true(proxy_count(&world.to_redis, count) >= n);
    assert_true(proxy_count(&world.to_postgres, count) >= n);
}

static void pass_again(void)
{
    proxy_pass(&world.to_redis);
    proxy_pass(&world.to_postgres);
}

/* So slow that nothing need be held back: to find who is held takes time, too. */
static void jitter(bool on)
{
    if (on) {
        gate_open();
        proxy_jitter(&world.to_redis, 10, 490);
        proxy_jitter(&world.to_postgres, 10, 100);
        return;
    }
    assert_met(PROXY_DELAYED, 5);
    pass_again();
}

static void slice(bool on)
{
    if (on) {
        proxy_slice(&world.to_redis, 1, 0);
        proxy_slice(&world.to_postgres, 1, 0);
        return;
    }
    assert_met(PROXY_SLICES, 1000);
    pass_again();
}

/* Too slow for the answers' limits: nothing is done, and no worker ends. */
static void crawl(bool on)
{
    if (on) {
        proxy_slice(&world.to_postgres, 10, 10000);
        proxy_slice(&world.to_redis, 10, 10000);
        fixture_pause_ms(4000);
        return;
    }
    assert_true(proxy_count(&world.to_redis, PROXY_SLICES) +
                    proxy_count(&world.to_postgres, PROXY_SLICES) >=
                100);
    pass_again();
}

static void reset(bool on)
{
    for (int i = 0; on && (i < 10 || proxy_count(&world.to_redis, PROXY_REFUSED) < 10);
         i++) {
        fault_assert_midway();
        fault_feed();
        proxy_reset_all(&world.to_redis);
        proxy_reset_all(&world.to_postgres);
        fixture_pause_ms(50);
    }
    assert_met(PROXY_REFUSED, 10);
}

static const struct fault quick[] = {
    {"up_to_half_a_second_late", jitter, .done = 30, .is_shipped = true},
};
static const struct fault full[] = {
    {"in_single_bytes", slice, .done = 30},
    {"of_a_thousand_bytes_a_second", .set = crawl},
};

/* Guarantee: Answers that are up to half a second late are borne. */
CASE_ROWS(pool_bears_answers, quick)
{
    fault_happens(row);
}

/* Guarantee: Answers in single bytes are put together, and a connection of a thousand
 * bytes a second is given up and made again. */
CASE_ROWS(pool_bears_also_answers, full, .when = fault_is_full)
{
    fault_happens(row);
}

/* Guarantee: Connections that are reset are made again. */
CASE(slow_reset_connections_are_made_again)
{
    static const struct fault resets = {"reset", .set = reset};

    proxy_close(&world.to_redis); /* by TCP */
    proxy_open(&world.to_redis, world.redis.url + strlen("unix://"), NULL);
    (void)snprintf(world.through.redis_url, sizeof world.through.redis_url,
                   "redis://127.0.0.1:%d", world.to_redis.port);
    fault_happens(&resets);
}

/* ---- swizzle ---- */

enum { POOLS = 3, LINKS = 2 * POOLS };

/* Pools with ways of their own. */
static struct proxy ways[LINKS];
static struct fixture_child pools[POOLS];

static void start_pool(size_t i)
{
    struct fixture through = world.f;

    proxy_open_postgres(&ways[2 * i], &through);
    proxy_open_redis(&ways[2 * i + 1], world.f.redis_url);
    (void)snprintf(through.redis_url, sizeof through.redis_url, "%s",
                   ways[2 * i + 1].url);
    fixture_spawn(&through, &pools[i], "run", "-w", "2", NULL);
}

static void shuffle(size_t order[LINKS], unsigned *seed)
{
    for (size_t i = 0; i < LINKS; i++)
        order[i] = i;
    for (size_t i = LINKS - 1; i > 0; i--) {
        size_t j = (size_t)rand_r(seed) % (i + 1), kept = order[i];

        order[i] = order[j];
        order[j] = kept;
    }
}

/* Clogs one way after the other, then frees them in another order. */
static void swizzle(unsigned *seed)
{
    size_t order[LINKS];

    shuffle(order, seed);
    for (size_t i = 0; i < LINKS; i++) {
        proxy_swallow(&ways[order[i]], true);
        fixture_pause_ms(150);
    }
    fault_assert_still(); /* all ways are clogged */
    fault_assert_midway();
    shuffle(order, seed);
    for (size_t i = 0; i < LINKS; i++) {
        proxy_swallow(&ways[order[i]], false);
        fixture_pause_ms(150);
    }
}

static void close_swizzled(void)
{
    for (size_t i = 0; i < POOLS; i++)
        world_kill(&pools[i]);
    for (size_t i = 0; i < LINKS; i++)
        proxy_close(&ways[i]);
    world_close();
}

static const struct load_size of_three = {
    .users = 250, .subscriptions = 500, .orders = 300, .periods = 40};

WORLD_OPEN(open_for_three, FAULT_PLAN, .load = &of_three)

/* Guarantee: Three pools whose connections clog one by one are at work again after
 * the last is free. */
CASE(swizzled_ways_of_three_pools_drain_after_the_last,
     .open = open_for_three,
     .close = close_swizzled,
     .when = fault_is_full)
{
    unsigned seed = 7, swallowed = 0;

    meet_begin();
    for (size_t i = 0; i < POOLS; i++)
        start_pool(i);
    for (size_t i = 0; i < POOLS; i++)
        pool_log_wait(&pools[i], "event=pool.started"); /* both servers answered */
    pool_work_wait(&world.f, 100);
    for (int i = 0; i < 4; i++)
        swizzle(&seed);
    for (size_t i = 0; i < LINKS; i++)
        swallowed += proxy_count(&ways[i], PROXY_SWALLOWED);
    assert_true(swallowed >= LINKS);
    fault_recovers();
    for (size_t i = 0; i < POOLS; i++) {
        pool_end(&pools[i]);
    }
    meet_assert("billing");
    meet_assert("orders");
    fault_check();
}
