/* Workers that die as soon as they start, and clocks of the workers that are a day off.
 */
#include <time.h>

#include "tests/lib/fault.h"
#include "tests/lib/steps.h"

/* ---- a storm of deaths ---- */

/* Kills every worker that appears, until the pool ends; returns how many. */
static unsigned kill_all_that_appear(int seconds)
{
    int64_t deadline = fixture_now_ms() + seconds * 1000;
    pid_t pids[POOL_CHILDREN];
    unsigned killed = 0;

    while (pool_is_alive(world.pool.pid)) {
        size_t n = pool_children(world.pool.pid, pids);

        if (fixture_now_ms() > deadline)
            fail_msg("%u deaths, and the pool goes on", killed);
        for (size_t i = 0; i < n; i++)
            killed += fault_kill(pids[i], SIGKILL);
        fixture_pause_ms(5);
    }
    return killed;
}

/* Deaths that were answered with a pause: not the first, which may come to any pool. */
static unsigned slow_restarts(void)
{
    return pool_log_count(&world.pool, "event=pool.worker_died") -
           pool_log_count(&world.pool, " restart_in_ms=0\n");
}

FAULT_WORLD(.load = NULL);

static void open_loaded(void)
{
    world_open();
    world_fill(&fault_usual);
}

/* Each pause is longer, so that there are few deaths; then it says so and ends. */
/* Guarantee: A pool whose workers all die at once is slowed down and given up with
 * exit code 70; the next pool does the work. */
CASE(crash_storm_is_slowed_down_and_given_up, .open = open_loaded)
{
    int64_t since = fixture_now_ms();

    fault_as_shipped();
    gate_shut("true", 1); /* nobody gets anywhere, until */
    fault_start_one();
    pool_log_wait(&world.pool, "event=pool.started");
    proxy_swallow(&world.to_redis, true);
    gate_open();
    assert_true(kill_all_that_appear(60) >= 10);
    pool_assert_ends(&world.pool, 70);
    assert_int_equal(slow_restarts(), 8);
    pool_logged(1, "event=pool.giving_up");
    /* Every five seconds one line, however many die. */
    assert_in_range(pool_log_count(&world.pool, "\n") -
                        pool_log_count(&world.pool, "event=pool.progress"),
                    1, 16);
    assert_true(fixture_now_ms() - since >= 1000); /* it did pause */
    proxy_pass(&world.to_redis);
    world.is_one = false;
    fault_start("4");
    fault_recovers();
    fault_end();
}

/* ---- clocks of the workers ---- */

static const struct {
    const char *name;
    int64_t ms;
} shifts[] = {{"a_day_ahead", 86400000}, {"a_day_behind", -86400000}};

/* Subscriptions of user 1 and 2: one due for an hour, one due in twelve hours. */
/* Guarantee: A worker whose clock is a day ahead charges nothing early, and one whose
 * clock is a day behind nothing late. */
CASE_ROWS(worker_charges_by_the_databases_clock_with_its_own, shifts)
{
    time_t there = time(NULL) + row->ms / 1000;
    char told[32];

    world_do(INTO_USERS
             "VALUES (1, 'USD'), (2, 'USD'); SELECT deposit(u, 'USD', 100000,"
             " '1') FROM (VALUES (1), (2)) AS v (u); " INTO_ANY_SUBSCRIPTIONS
             "SELECT u,"
             " 'p', 100, 'USD', at, 'month', at FROM (VALUES (1, now() - interval '1"
             " hour'), (2, now() + interval '12 hours')) AS v (u, at)");
    fixture_move_clock(row->ms);
    fixture_env("LEDGERLOCK_POOL_CLOCKS_APART_S", "0");
    (void)strftime(told, sizeof told, "ts=%Y-%m-%dT", gmtime(&there));
    world_runs(0, "run --once -w 2");
    fixture_assert_contains(said.err, told); /* its clock was off */
    world_expect("1", "SELECT string_agg(s.user_id::text, ',') FROM charges JOIN"
                      " subscriptions AS s USING (subscription_id)");
    fault_check_rows("now");
}
