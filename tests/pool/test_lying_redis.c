/* lying redis: every lock is granted to everybody, with random tokens. PostgreSQL alone
 * keeps the totals. */
#include "tests/lib/load.h"
#include "tests/lib/world.h"
#include "tools/testkit/fake_redis.h"

enum { LIE_SECONDS = 8, CLIENTS_MS = 2000, POOLS = 2 };

static struct fake_redis liar;
static struct fixture_child pools[POOLS];
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
    for (size_t i = 0; i < POOLS; i++) {
        if (pools[i].pid > 0) {
            (void)kill(pools[i].pid, SIGKILL);
            (void)waitpid(pools[i].pid, NULL, 0);
        }
    }
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
    int64_t since = fixture_now_ms(), took = 0, all = load_left();

    load_clients_start(CLIENTS_MS);
    for (size_t i = 0; i < POOLS; i++)
        fixture_spawn(&world.f, &pools[i], "run", "-w", "2", NULL);
    for (size_t i = 0; i < POOLS;
         i++) /* a TERM that came before would end it at once */
        pool_log_wait(&pools[i], "event=pool.started");
    while (took < POOL_WAIT_MS && (took < LIE_SECONDS * 1000 || !is_enough()) &&
           load_left() > all / 3) {
        fixture_pause_ms(20);
        took = fixture_now_ms() - since;
    }
    for (size_t i = 0; i < POOLS; i++)
        (void)kill(pools[i].pid, SIGTERM);
    for (size_t i = 0; i < POOLS; i++) {
        pool_assert_ends(&pools[i], 0);
        assert_int_equal(pool_log_count(&pools[i], "event=pool.worker_died"), 0);
    }
}

/* Guarantee: A Redis that grants everything to everybody, with random tokens, brings
 * nothing charged twice and nothing oversold. */
CASE(lying_redis_bills_nothing_twice_and_oversells_nothing)
{
    int64_t done;

    work_on_lies();
    done = pool_work_done();
    print_message("%u locks granted, %u of them over keys that were held; %" PRId64
                  " periods and orders done on lies\n",
                  fake_grants(&liar), fake_shared_grants(&liar), done);
    assert_true(fake_shared_grants(&liar) >= 20); /* two did hold the same keys */
    assert_true(done >= 200);
    assert_true(pool_incidents("fenced", "newer fence") > 0);
    promise_int_equal(pool_incidents("parked", ""), 0);
    memcpy(world.f.redis_url, honest_url, sizeof world.f.redis_url);
    fixture_spawn(&world.f, &pools[0], "run", "-w", "2", NULL);
    load_clients_finish();
    (void)kill(pools[0].pid, SIGTERM);
    pool_assert_ends(&pools[0], 0);
    load_assert_exact();
}

/* Not taken for one that is away, which would be waited for. */
CASE(redis_too_old_is_refused_at_start)
{
    static struct fixture_output o;

    fake_redis_close(&liar);
    fake_redis_start(&liar, &(struct fake_options){.version = "6.0.16"});
    (void)snprintf(world.f.redis_url, sizeof world.f.redis_url, "%s", liar.url);
    assert_int_equal(fixture_run(&world.f, &o, "run", "--once", NULL), 6);
    fixture_assert_contains(o.err, "6.0.16");
    assert_int_equal(pool_work_done(), 0);
}
