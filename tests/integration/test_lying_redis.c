/* lying redis: every lock is granted to everybody, with random tokens. PostgreSQL alone
 * keeps the totals. */
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "tests/lib/liar.h"
#include "tests/lib/pool_world.h"

enum { LIE_SECONDS = 40, POOLS = 2 };

static struct fixture f;
static struct liar liar;
static struct fixture_child pools[POOLS];
static char honest_url[FIXTURE_URL];

static const struct pool_work work = {
    .users = 150, .periods = 3, .orders = 300, .units = 180};

static int open_world(void **state)
{
    (void)state;
    fixture_open_migrated(&f);
    fixture_become(&f, "ledgerlock_worker");
    fixture_env("LEDGERLOCK_POOL_POLL_MS", "20");
    fixture_env("LEDGERLOCK_POOL_BATCH", "10");
    pool_work_put(&f, &work);
    memcpy(honest_url, f.redis_url, sizeof honest_url);
    liar_open(&liar, "7.0.15");
    memcpy(f.redis_url, liar.url, sizeof f.redis_url);
    return 0;
}

static int close_world(void **state)
{
    (void)state;
    for (size_t i = 0; i < POOLS; i++) {
        if (pools[i].pid > 0) {
            (void)kill(pools[i].pid, SIGKILL);
            (void)waitpid(pools[i].pid, NULL, 0);
        }
    }
    liar_close(&liar);
    fixture_close(&f);
    return 0;
}

/* Lets eight workers do a good part of the work with those locks; of two pools, since
 * those of one keep out of each other's way without a lock. Not all: the more often a
 * row was written, the fewer random tokens are as high as its fence. */
static int64_t work_on_lies(void)
{
    int64_t deadline = pool_now_ms() + LIE_SECONDS * 1000;

    for (size_t i = 0; i < POOLS; i++)
        fixture_spawn(&f, &pools[i], "run", "-w", "4", "--now", pool_work_now(&work),
                      NULL);
    while (pool_work_done(&f) < pool_work_all(&work) * 2 / 3 &&
           pool_now_ms() < deadline)
        fixture_pause_ms(20);
    for (size_t i = 0; i < POOLS; i++)
        (void)kill(pools[i].pid, SIGTERM);
    for (size_t i = 0; i < POOLS; i++) {
        pool_assert_ends(&pools[i], 0, 15);
        assert_int_equal(pool_log_count(&pools[i], "event=pool.worker_died"), 0);
    }
    return pool_work_done(&f);
}

static void lying_redis_bills_nothing_twice_and_oversells_nothing(void **state)
{
    static struct fixture_output o;
    int64_t done = work_on_lies();

    (void)state;
    print_message("%u tenures granted, %u of them over keys that were held; %" PRId64
                  " of %" PRId64 " done on lies\n",
                  liar_grants(&liar), liar_shared_grants(&liar), done,
                  pool_work_all(&work));
    assert_true(liar_shared_grants(&liar) >= 20); /* two did hold the same keys */
    assert_true(done >= pool_work_all(&work) / 2);
    assert_true(pool_incidents(&f, "fenced", "newer fence") > 0);
    assert_int_equal(pool_incidents(&f, "parked", ""), 0);
    memcpy(f.redis_url, honest_url, sizeof f.redis_url);
    assert_int_equal(fixture_run(&f, &o, "run", "--once", "-w", "2", "--now",
                                 pool_work_now(&work), NULL),
                     0);
    pool_work_assert_exact(&f, &work);
}

/* Not taken for one that is away, which would be waited for. */
static void redis_too_old_is_refused_at_start(void **state)
{
    static struct fixture_output o;

    (void)state;
    liar_close(&liar);
    liar_open(&liar, "6.0.16");
    memcpy(f.redis_url, liar.url, sizeof f.redis_url);
    assert_int_equal(
        fixture_run(&f, &o, "run", "--once", "--now", pool_work_now(&work), NULL), 6);
    fixture_assert_contains(o.err, "6.0.16");
    assert_int_equal(pool_work_done(&f), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            lying_redis_bills_nothing_twice_and_oversells_nothing, open_world,
            close_world),
        cmocka_unit_test_setup_teardown(redis_too_old_is_refused_at_start, open_world,
                                        close_world),
    };

    fixture_need_servers();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
