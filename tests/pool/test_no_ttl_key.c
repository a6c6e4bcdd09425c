/* A lock key without a time to live: no pool leaves one, nothing ends it. It is told of
 * once, never broken, and `run --once` does not wait for it for ever. */
#include "tests/lib/shop.h"
#include "tests/lib/steps.h"

static const struct pool_work work = {.users = 20, .periods = 2};

WORLD(.lease_ms = 1000, .work = &work);

static int run_once(const char *workers)
{
    return fixture_run(&world.f, &world.o, "run", "--once", "-w", workers, "--now",
                       pool_work_now(&work), NULL);
}

static void assert_still_there(const char *key)
{
    assert_string_equal(shop_key("PTTL", key, ""), "-1");
    (void)shop_key("DEL", key, "");
}

/* test_liveness shows which rows wait for it, and what the last line says of it. */
/* Guarantee: The command that the log names frees the key, and the rest is worked. */
CASE(once_after_the_named_command_ends_with_all_done)
{
    (void)shop_key("HSET", "user:3", "a list"); /* whatever type it has */
    assert_int_equal(run_once("2"), 7);
    fixture_assert_contains(world.o.err, "event=lock.no_ttl");
    fixture_assert_contains(world.o.err, "key=user:3 ");
    fixture_assert_contains(world.o.err, "\"ledgerlock locks release user:3\"");
    world_runs(0, "locks release user:3 --yes");
    assert_int_equal(run_once("3"), 0);
    pool_work_assert_exact(&world.f, &work);
}

/* Not for three leases, but for nearly all of them. */
CASE(once_waits_for_a_key_that_will_end)
{
    int64_t since_ms = fixture_now_ms();

    (void)shop_key("SET", "user:3", "other PX 2500");
    assert_int_equal(run_once("3"), 0);
    assert_true(fixture_now_ms() - since_ms >= 2000);
    assert_null(strstr(world.o.err, "lock.no_ttl"));
    pool_work_assert_exact(&world.f, &work);
}

/* Guarantee: Each worker names such a key once, however long it stays, and the rows are
 * worked when it is gone. */
CASE(worker_says_it_once_and_the_rows_are_worked_when_it_is_gone)
{
    unsigned times;

    (void)shop_key("SET", "user:3", "leftover");
    pool_start("run -w 2 --jobs billing --now %s", pool_work_now(&work));
    pool_work_wait(&world.f, pool_work_all(&work) - 2);
    fixture_pause_ms(2500);
    times = pool_log_count(&world.pool, "event=lock.no_ttl");
    assert_in_range(times, 1, 2);
    assert_still_there("user:3");
    pool_work_wait(&world.f, pool_work_all(&work));
}
