/* pool: the clock of its Redis jumps an hour ahead and back again while it works:
 * leases end under the workers, and the totals are exact all the same. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "tests/lib/clock_world.h"
#include "tests/lib/pool_world.h"

static struct fixture f;
static struct fixture_redis redis;
static struct fixture_child pool;

static const struct pool_work work = {
    .users = 200, .periods = 14, .orders = 200, .units = 120};

static int open_world(void **state)
{
    (void)state;
    fixture_open_migrated(&f);
    fixture_become(&f, "ledgerlock_worker");
    fixture_env("LEDGERLOCK_POOL_BATCH", "5");
    pool_work_put(&f, &work);
    fixture_redis_start(&redis, NULL);
    (void)snprintf(f.redis_url, sizeof f.redis_url, "%s", redis.url);
    return 0;
}

static int close_world(void **state)
{
    (void)state;
    if (pool.pid > 0) {
        (void)kill(pool.pid, SIGKILL);
        (void)waitpid(pool.pid, NULL, 0);
    }
    memset(&pool, 0, sizeof pool);
    fixture_redis_close(&redis);
    fixture_close(&f);
    return 0;
}

/* Ahead and back in turn until the work is done; returns how often. */
static int jump_while_it_works(void)
{
    int64_t deadline_ms = clock_real_ms() + 40000;
    int64_t ms = CLOCK_HOUR_MS;
    int jumps = 0;

    while (pool_work_done(&f) < pool_work_all(&work) && clock_real_ms() < deadline_ms) {
        clock_jump_server(&redis, ms);
        ms = -ms;
        jumps++;
        fixture_pause_ms(20);
    }
    return jumps;
}

static void clock_jump_pool_totals_are_exact(void **state)
{
    int jumps;

    (void)state;
    fixture_spawn(&f, &pool, "run", "-w", "4", "--once", "--now", pool_work_now(&work),
                  NULL);
    pool_work_wait(&f, 100, 10);
    jumps = jump_while_it_works();
    pool_assert_ends(&pool, 0, 20);
    assert_true(jumps >= 6);
    assert_true(pool_incidents(&f, "lost", "") > 0); /* leases did end under them */
    assert_int_equal(pool_counter(&f, "parked"), 0);
    pool_work_assert_exact(&f, &work);
}

#define CLOCK_TEST(test) cmocka_unit_test_setup_teardown(test, open_world, close_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLOCK_TEST(clock_jump_pool_totals_are_exact),
    };

    fixture_need_servers();
    fixture_movable_clocks = true;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
