/* lying redis: every lock is granted to everybody, with random tokens. PostgreSQL alone
 * keeps the totals. */
#include "tests/lib/steps.h"
#include "tests/testkit/fake_redis.h"

enum { LIE_SECONDS = 8, CLIENTS_MS = 2000 };

static struct fake_redis liar;
static char honest_url[FIXTURE_URL];

static const struct load_size size = {
    .users = 150, .subscriptions = 150, .orders = 300, .periods = 3};

static void prepare(void)
{
    memcpy(honest_url, world.f.redis_url, sizeof honest_url);
    fake_redis_start(&liar, &(struct fake_options){.grants = true});
    (void)snprintf(world.f.redis_url, sizeof world.f.redis_url, "%s", liar.url);
}

static void undo(void)
{
    fake_redis_close(&liar);
}

WORLD(.any = true,
      .poll_ms = 20,
      .batch = 10,
      .load = &size,
      .also = prepare,
      .undo = undo);

/* Two did hold the same keys, some were late, and a good part was done. */
static bool is_enough(void)
{
    return fake_shared_grants(&liar) >= 20 && pool_work_done() >= 200 &&
           pool_incidents("fenced", "newer fence") > 0;
}

/* Lets four workers of each job do a good part of the work with those locks, beside the
 * clients; of two pools. Not all: the more often a row was written, the fewer random
 * tokens are as high as its fence. */
static void work_on_lies(void)
{
    struct fixture_child *const pools[] = {&world.pool, &world.others};
    int64_t since = fixture_now_ms(), took = 0, all = load_left();

    load_clients_start(CLIENTS_MS);
    for (size_t i = 0; i < 2; i++)
        starts(&world.f, pools[i], "run -w 2");
    for (size_t i = 0; i < 2; i++) /* a TERM that came before would end it at once */
        pool_log_wait(pools[i], "event=pool.started");
    while (took < POOL_WAIT_MS && (took < LIE_SECONDS * 1000 || !is_enough()) &&
           load_left() > all / 3) {
        fixture_pause_ms(20);
        took = fixture_now_ms() - since;
    }
    for (size_t i = 0; i < 2; i++)
        (void)kill(pools[i]->pid, SIGTERM);
    for (size_t i = 0; i < 2; i++) {
        pool_assert_ends(pools[i], 0);
        assert_int_equal(pool_log_count(pools[i], "event=pool.worker_died"), 0);
    }
    assert_true(is_enough());
}

/* Guarantee: A Redis that grants everything to everybody, with random tokens, brings
 * nothing charged twice and nothing oversold. */
CASE(lying_redis_bills_nothing_twice_and_oversells_nothing)
{
    work_on_lies();
    print_message("%u locks granted, %u of them over keys that were held; %" PRId64
                  " periods and orders done on lies\n",
                  fake_grants(&liar), fake_shared_grants(&liar), pool_work_done());
    promise_int_equal(pool_incidents("parked", ""), 0);
    memcpy(world.f.redis_url, honest_url, sizeof world.f.redis_url);
    pool_start("run -w 2");
    load_clients_finish();
    pool_stop();
    load_assert_exact();
}

/* Not taken for one that is away, which would be waited for. */
CASE(redis_too_old_is_refused_at_start)
{
    fake_redis_close(&liar);
    fake_redis_start(&liar, &(struct fake_options){.version = "6.0.16"});
    (void)snprintf(world.f.redis_url, sizeof world.f.redis_url, "%s", liar.url);
    world_says(6, "6.0.16", "run --once");
    assert_int_equal(pool_work_done(), 0);
}
