/* clocks: a pool does not start when a clock is wrong, or --now a slip of the pen. */
#include "tests/lib/clock_world.h"
#include "tests/lib/hand.h"
#include "tests/lib/runs.h"
#include "tests/lib/steps.h"
#include "worker/batch/batch.h"

static void begin(void)
{
    fixture_movable_clocks = true;
}

static const struct world_plan world_plan = {.redis = true};
GROUP(.plan = &world_plan, .start = begin, .open = world_open, .close = world_close);

/* Guarantee: The pool does not start while the clock of PostgreSQL or of Redis is more
 * than a minute from ours. */
CASE(pool_with_a_clock_of_its_own_does_not_start)
{
    runs(&world.f, 0, "run --once");
    fixture_move_clock(CLOCK_HOUR_MS);
    says(&world.f, 6, "the clock of PostgreSQL is ", "run --once");
    shows(" behind ours");
    fixture_move_clock(-CLOCK_HOUR_MS);
    says(&world.f, 6, " ahead of ours", "run --once");
    runs(&world.f, 0, "run --once --clocks-apart-s 3600");
    runs(&world.f, 0, "run --once --clocks-apart-s 0");
}

CASE(redis_with_a_clock_of_its_own_is_refused)
{
    clock_jump_server(&world.redis, CLOCK_HOUR_MS);
    says(&world.f, 6, "the clock of Redis is ", "run --once");
    shows(" ahead of ours");
    clock_jump_server(&world.redis, -2 * CLOCK_HOUR_MS);
    says(&world.f, 6, " behind ours", "run --once");
    clock_mend_server(&world.redis);
    runs(&world.f, 0, "run --once");
}

/* Guarantee: --now later than the database's clock is refused: nothing is charged
 * before its time. */
CASE(now_to_come_is_refused)
{
    world_do(
        "INSERT INTO users (user_id, currency) VALUES (1, 'USD'); "
        "INSERT INTO subscriptions (user_id, plan, amount_minor, currency, "
        "anchor_at, unit, next_due_at) VALUES (1, 'p', 100, 'USD', now() + interval "
        "'1 year', 'month', now() + interval '1 year')");
    says(&world.f, 2, "nothing happens before its time",
         "run --once --now 2126-11-22T00:00:00Z");
    holds(&world.f, 0, "SELECT count(*) FROM charges");
}

/* Another charge of user 1 is due. */
static void subscribe(int n)
{
    world_do("INSERT INTO subscriptions (user_id, plan, amount_minor, currency,"
             " anchor_at, unit, next_due_at) VALUES (1, 'p%d', 100, 'USD', now(),"
             " 'month', now())",
             n);
}

/* A user with money and one charge, made by a pool that goes on. */
static void charge_one(void)
{
    world_do(
        "INSERT INTO users (user_id, currency) VALUES (1, 'USD'); SELECT deposit(1,"
        " 'USD', 1000, 'k')");
    subscribe(1);
    pool_start("run -w 1 --jobs billing --billing-poll-ms 50");
    world_wait("SELECT count(*) = 1 FROM ledgerlock.charges");
}

/* Guarantee: A worker compares the clocks again when it is connected anew: it works
 * nothing while one is more than a minute from its own, and goes on when all are right.
 */
CASE(worker_that_meets_a_wrong_clock_later_works_nothing_until_it_is_right)
{
    charge_one();
    clock_jump_server(&world.redis, CLOCK_HOUR_MS);
    fixture_pause_ms(1100); /* the library compares at most once a second */
    super_do("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE"
             " datname = current_database() AND usename = 'ledgerlock_worker'");
    pool_log_wait(&world.pool, "the clock of Redis is ");
    subscribe(2);
    pool_assert_stands_still(500);
    clock_mend_server(&world.redis);
    world_wait("SELECT count(*) = 2 FROM ledgerlock.charges");
    pool_stop();
}

/* Guarantee: A worker compares the clocks again when Redis is back after an outage: it
 * may be another server. */
CASE(worker_whose_redis_is_back_with_another_clock_works_nothing)
{
    charge_one();
    (void)redis_do("ACL SETUSER default -evalsha"); /* the jump needs EVAL */
    subscribe(2);
    pool_log_wait(&world.pool, "event=pool.redis_down");
    clock_jump_server(&world.redis, CLOCK_HOUR_MS);
    fixture_pause_ms(1100); /* the library compares at most once a second */
    (void)redis_do("ACL SETUSER default +@all");
    FIXTURE_AWAIT(pool_log_count(&world.pool, "the clock of Redis is ") > 0 ||
                      world_ask("SELECT count(*) FROM charges") > 1,
                  "%s", "neither refused nor charged");
    world_is(1, "SELECT count(*) FROM charges");
    clock_mend_server(&world.redis);
    world_wait("SELECT count(*) = 2 FROM ledgerlock.charges");
    pool_stop();
}

/* Guarantee: A worker compares the clocks again once an hour. */
CASE(clock_that_goes_wrong_at_work_is_found_within_the_hour)
{
    struct err e = {0};
    HAND h;

    hand_open(&h, 3000);
    assert_int_equal(clocks_tend(&h.s, &e), 0);
    clock_jump_server(&world.redis, CLOCK_HOUR_MS);
    assert_int_equal(clocks_tend(&h.s, &e), 0);
    h.s.clocks_ms -= CLOCK_HOUR_MS;
    fixture_pause_ms(1100); /* the library compares at most once a second */
    FIXTURE_AWAIT(clocks_tend(&h.s, &e) != 0, "the clock is not found wrong");
    fixture_assert_contains(e.msg, "the clock of Redis is ");
    clock_mend_server(&world.redis);
}
