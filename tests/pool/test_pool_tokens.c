/* pool: Redis forgets its last token, in every way it can: the pool goes on at once and
 * without an incident, and its tokens rise. Only a clock that is behind the fences
 * costs a batch; one that jumps while the pool works ends leases, and totals are exact.
 */
#include "tests/lib/clock_world.h"
#include "tests/lib/fault.h"
#include "tests/lib/ha_world.h"
#include "tests/lib/hand.h"
#include "tests/lib/meet.h"
#include "tests/lib/steps.h"

static struct ha_server primary, replica;

static const char later[] = "2024-03-05T00:00:00Z";

static void use(const struct ha_server *s)
{
    (void)snprintf(world.f.redis_url, sizeof world.f.redis_url, "%s", s->redis.url);
}

/* A pool has worked the first month, with tokens of the primary. */
static void open_worked(void)
{
    hand_world();
    fixture_env("LEDGERLOCK_POOL_CLOCKS_APART_S", "0");
    ha_start(&primary, 0);
    use(&primary);
    world_run("2024-01-05T00:00:00Z");
}

static void close_worked(void)
{
    ha_close(&replica);
    ha_close(&primary);
    world_close();
}

static void begin(void)
{
    fixture_movable_clocks = true;
}

GROUP(.start = begin, .open = open_worked, .close = close_worked);

/* Redis has no last token, or an older one: all that is due is charged all the same. */
static void assert_goes_on(void)
{
    int64_t before = world_ask("SELECT max(fence) FROM users");

    meet_begin();
    world_run_pool("4", later);
    meet_assert("billing");
    world_is(15, "SELECT count(*) FROM charges");
    world_is(0, "SELECT count(*) FROM users WHERE fence <= %" PRId64, before);
    assert_int_equal(world_ask("SELECT count(*) FROM lock_incidents"), 0);
    world_audit(later, NULL);
}

/* A batch more, whose tokens the one that answers after it has not heard of. */
static void work_a_month_more(void)
{
    world_run("2024-02-05T00:00:00Z");
    world_is(10, "SELECT count(*) FROM charges");
}

/* Guarantee: Tokens rise over an older file of Redis. */
CASE(tokens_rise_after_an_old_dump_is_restored)
{
    ha_do(&primary, "SAVE");
    work_a_month_more();
    ha_kill(&primary);
    fixture_redis_start(&primary.redis, NULL);
    assert_int_equal(ha_integer(&primary, "DBSIZE"), 1);
    assert_goes_on();
}

/* Guarantee: Tokens rise over a replica that lags and is promoted. */
CASE(tokens_rise_after_a_replica_that_lags_is_promoted)
{
    ha_start(&replica, primary.port);
    ha_wait_linked(&replica);
    ha_do(&replica, "REPLICAOF 127.0.0.1 1"); /* cut off, with what it has */
    work_a_month_more();
    ha_kill(&primary);
    ha_do(&replica, "REPLICAOF NO ONE");
    use(&replica);
    assert_goes_on();
}

/* Its clock goes back an hour and it forgets: one refused batch tells what to pass. */
/* Guarantee: A Redis that forgets and whose clock is behind the fences costs one
 * batch. */
CASE(clock_behind_the_fences_costs_one_batch)
{
    clock_jump_server(&primary.redis, -CLOCK_HOUR_MS);
    ha_do(&primary, "FLUSHALL");
    world_settle(later);
    world_is(15, "SELECT count(*) FROM charges");
    world_expect("fenced claim", "SELECT string_agg(kind || ' ' || phase, ',') FROM "
                                 "lock_incidents");
}

/* The last token holds the tokens up as long as Redis keeps it. */
CASE(clock_that_goes_back_changes_nothing_while_redis_remembers)
{
    clock_jump_server(&primary.redis, -CLOCK_HOUR_MS);
    assert_goes_on();
}

/* ---- in the middle of the work ---- */

WORLD_OPEN(open_load, FAULT_PLAN, .load = &fault_usual)

static void jump(bool on)
{
    for (int i = 0; on && i < 50; i++) {
        if (i % 3 == 0)
            gate_feed();
        checker_mark("forgot", 0, 0);
        clock_jump_server(&world.redis, i % 2 == 0 ? CLOCK_HOUR_MS : -CLOCK_HOUR_MS);
        fixture_pause_ms(20);
    }
}

/* Guarantee: Redis' clock jumps an hour ahead and back, again and again: totals are
 * exact. */
CASE(clock_jump_pool_totals_are_exact, .open = open_load, .close = world_close)
{
    static const struct fault jumps = {"jumps", jump, .up = NULL};

    fault_happens(&jumps);
    assert_true(pool_incidents("lost", "") > 0); /* leases did end */
}
