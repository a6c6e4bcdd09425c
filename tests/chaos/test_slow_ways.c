/* The ways to the servers are bad: answers late and at random, in single bytes, a
 * thousand bytes a second, reset; and all of several pools clogged one after the other.
 * Slower, and right. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/chaos_world.h"

/* The same ways, by TCP. */
static int open_by_tcp(void **state)
{
    (void)chaos_open(state);
    proxy_close(&chaos.to_redis);
    proxy_open(&chaos.to_redis, chaos.redis.url + strlen("unix://"), NULL);
    (void)snprintf(chaos.through.redis_url, sizeof chaos.through.redis_url,
                   "redis://127.0.0.1:%d", chaos.to_redis.port);
    return 0;
}

static void slow_answers_up_to_half_a_second_are_borne(void **state)
{
    int64_t done;

    (void)state;
    chaos_start_midway();
    proxy_jitter(&chaos.to_redis, 10, 490);
    proxy_jitter(&chaos.to_postgres, 10, 100);
    done = pool_work_done(&chaos.f);
    pool_work_wait(&chaos.f, done + 30, 60); /* slowly, it goes on */
    assert_true(proxy_count(&chaos.to_redis, PROXY_DELAYED) >= 5);
    assert_true(proxy_count(&chaos.to_postgres, PROXY_DELAYED) >= 5);
    chaos_assert_midway();
    proxy_pass(&chaos.to_redis);
    proxy_pass(&chaos.to_postgres);
    chaos_recovers(60);
    chaos_end();
}

static void slow_single_bytes_are_put_together(void **state)
{
    int64_t done;

    (void)state;
    chaos_start_midway();
    proxy_slice(&chaos.to_redis, 1, 0);
    proxy_slice(&chaos.to_postgres, 1, 0);
    done = pool_work_done(&chaos.f);
    pool_work_wait(&chaos.f, done + 30, 60);
    assert_true(proxy_count(&chaos.to_redis, PROXY_SLICES) >= 1000);
    assert_true(proxy_count(&chaos.to_postgres, PROXY_SLICES) >= 1000);
    proxy_pass(&chaos.to_redis);
    proxy_pass(&chaos.to_postgres);
    chaos_recovers(60);
    chaos_end();
}

/* Too slow for the answers' limits: nothing is done, and no worker ends. */
static void slow_thousand_bytes_a_second_are_given_up_and_taken_up(void **state)
{
    (void)state;
    chaos_start_midway();
    proxy_slice(&chaos.to_postgres, 10, 10000);
    proxy_slice(&chaos.to_redis, 10, 10000);
    fixture_pause_ms(4000);
    assert_true(proxy_count(&chaos.to_redis, PROXY_SLICES) +
                    proxy_count(&chaos.to_postgres, PROXY_SLICES) >=
                100);
    chaos_assert_midway();
    proxy_pass(&chaos.to_redis);
    proxy_pass(&chaos.to_postgres);
    chaos_recovers(60);
    assert_int_equal(pool_log_count(&chaos.pool, "event=pool.worker_died"), 0);
    chaos_end();
}

static void slow_reset_connections_are_made_again(void **state)
{
    (void)state;
    chaos_start_midway();
    for (int i = 0; i < 10 || proxy_count(&chaos.to_redis, PROXY_REFUSED) < 10; i++) {
        chaos_assert_midway();
        proxy_reset_all(&chaos.to_redis);
        proxy_reset_all(&chaos.to_postgres);
        fixture_pause_ms(50);
    }
    assert_true(proxy_count(&chaos.to_redis, PROXY_REFUSED) >= 10);
    assert_true(proxy_count(&chaos.to_postgres, PROXY_REFUSED) >= 10);
    chaos_assert_midway();
    chaos_recovers(60);
    assert_int_equal(pool_log_count(&chaos.pool, "event=pool.worker_died"), 0);
    chaos_end();
}

/* ---- swizzle ---- */

enum { POOLS = 3, LINKS = 2 * POOLS };

/* Pools with ways of their own. */
static struct proxy ways[LINKS];
static struct fixture_child pools[POOLS];

static void start_pool(size_t i)
{
    struct fixture through = chaos.f;

    proxy_open_postgres(&ways[2 * i], &through);
    proxy_open_redis(&ways[2 * i + 1], chaos.f.redis_url);
    (void)snprintf(through.redis_url, sizeof through.redis_url, "%s",
                   ways[2 * i + 1].url);
    fixture_spawn(&through, &pools[i], "run", "-w", "2", "--now",
                  pool_work_now(&chaos.work), NULL);
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
    chaos_assert_stands_still(500); /* all ways are clogged */
    chaos_assert_midway();
    shuffle(order, seed);
    for (size_t i = 0; i < LINKS; i++) {
        proxy_swallow(&ways[order[i]], false);
        fixture_pause_ms(150);
    }
}

static void swizzled_ways_of_three_pools_drain_after_the_last(void **state)
{
    unsigned seed = 7, swallowed = 0;

    (void)state;
    for (size_t i = 0; i < POOLS; i++)
        start_pool(i);
    pool_work_wait(&chaos.f, 100, 10);
    for (int i = 0; i < (chaos_is_full() ? 4 : 1); i++)
        swizzle(&seed);
    for (size_t i = 0; i < LINKS; i++)
        swallowed += proxy_count(&ways[i], PROXY_SWALLOWED);
    assert_true(swallowed >= LINKS);
    chaos_recovers(60);
    for (size_t i = 0; i < POOLS; i++) {
        (void)kill(pools[i].pid, SIGTERM);
        pool_assert_ends(&pools[i], 0, 12);
    }
    chaos_check();
}

static int close_swizzled(void **state)
{
    for (size_t i = 0; i < POOLS; i++) {
        if (pools[i].pid > 0) {
            (void)kill(pools[i].pid, SIGKILL);
            (void)waitpid(pools[i].pid, NULL, 0);
        }
        (void)close(pools[i].err_fd);
        (void)close(pools[i].out_fd);
    }
    for (size_t i = 0; i < LINKS; i++)
        proxy_close(&ways[i]);
    return chaos_close(state);
}

static int open_for_three(void **state)
{
    (void)chaos_open_empty(state);
    chaos.work =
        (struct pool_work){.users = 250, .periods = 60, .orders = 200, .units = 120};
    chaos_fill();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(slow_answers_up_to_half_a_second_are_borne,
                                        chaos_open, chaos_close),
        cmocka_unit_test_setup_teardown(slow_reset_connections_are_made_again,
                                        open_by_tcp, chaos_close),
    };
    const struct CMUnitTest more[] = {
        cmocka_unit_test_setup_teardown(slow_single_bytes_are_put_together, chaos_open,
                                        chaos_close),
        cmocka_unit_test_setup_teardown(
            slow_thousand_bytes_a_second_are_given_up_and_taken_up, chaos_open,
            chaos_close),
        cmocka_unit_test_setup_teardown(
            swizzled_ways_of_three_pools_drain_after_the_last, open_for_three,
            close_swizzled),
    };

    fixture_need_servers();
    if (chaos_is_full() && cmocka_run_group_tests(more, NULL, NULL) != 0)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
