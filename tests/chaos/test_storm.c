/* Workers that die as soon as they start, settings that cannot work, and clocks of the
 * workers that are a day off. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/lib/chaos_world.h"

/* ---- a storm of deaths ---- */

/* Kills every worker that appears, until the pool ends; returns how many. */
static unsigned kill_all_that_appear(int seconds)
{
    int64_t deadline = pool_now_ms() + seconds * 1000;
    pid_t pids[POOL_CHILDREN];
    unsigned killed = 0;

    while (pool_is_alive(chaos.pool.pid)) {
        size_t n = pool_children(chaos.pool.pid, pids);

        if (pool_now_ms() > deadline)
            fail_msg("%u deaths, and the pool goes on", killed);
        for (size_t i = 0; i < n; i++)
            killed += chaos_kill(pids[i], SIGKILL);
        fixture_pause_ms(5);
    }
    return killed;
}

/* Deaths that were counted: not of the listener, which may be taken for a worker before
 * it has its name, nor of one that had worked before Redis was silent. */
static unsigned quick_deaths(void)
{
    return pool_log_count(&chaos.pool, " slot=0 pid=") -
           pool_log_count(&chaos.pool, " restart_in_ms=0\n");
}

/* Each pause is longer, so that there are few deaths; then it says so and ends. */
static void crash_storm_is_slowed_down_and_given_up(void **state)
{
    int64_t since = pool_now_ms();

    (void)state;
    chaos_start("1");
    pool_log_wait(&chaos.pool, "event=pool.started", 5);
    proxy_swallow(&chaos.to_redis, true); /* nobody gets anywhere */
    assert_true(kill_all_that_appear(60) >= 10);
    pool_assert_ends(&chaos.pool, 70, 1);
    assert_int_equal(quick_deaths(), 9);
    assert_int_equal(pool_log_count(&chaos.pool, "event=pool.giving_up"), 1);
    assert_true(pool_log_count(&chaos.pool, "\n") <= 16);
    assert_true(pool_now_ms() - since >= 1000); /* it did pause */
    proxy_pass(&chaos.to_redis);
    chaos_start("4");
    chaos_recovers(60);
    chaos_end();
}

/* ---- settings ---- */

static void lease_out_of_bounds_is_refused_with_the_bounds(void **state)
{
    static const char *const wrong[] = {"0", "-1", "999", "600001", "soon"};
    static struct fixture_output o;

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        fixture_env("LEDGERLOCK_LOCKS_LEASE_MS", wrong[i]);
        assert_int_equal(fixture_run(&chaos.f, &o, "run", "--once", NULL), 3);
        fixture_assert_contains(o.err, "lease_ms");
        fixture_assert_contains(o.err, i < 4 ? "1000" : "whole number");
    }
    assert_int_equal(pool_work_done(&chaos.f), 0);
    fixture_env("LEDGERLOCK_LOCKS_LEASE_MS", "1000"); /* the shortest */
    chaos_start("4");
    chaos_recovers(60);
    chaos_end();
}

/* ---- clocks of the workers ---- */

/* Subscriptions of user 1 and 2: one due for an hour, one due in twelve hours. */
static const char around_now[] =
    "SET search_path = ledgerlock; INSERT INTO users (user_id, currency) VALUES (1,"
    " 'USD'), (2, 'USD'); SELECT deposit(u, 1, 100000) FROM (VALUES (1), (2)) AS v (u);"
    " INSERT INTO subscriptions (user_id, plan, amount_minor, currency, anchor_at, unit,"
    " next_due_at) SELECT u, 'p', 100, 'USD', at, 'month', at FROM (VALUES (1, now() -"
    " interval '1 hour'), (2, now() + interval '12 hours')) AS v (u, at)";

static void worker_a_day_off_charges_by_the_databases_clock(int64_t shift_ms)
{
    static struct fixture_output o;
    char url[FIXTURE_URL], said[16], told[32];
    time_t there = time(NULL) + shift_ms / 1000;

    fixture_url_as(&chaos.f, "ledgerlock_owner", url, sizeof url);
    fixture_exec(url, around_now);
    fixture_move_clock(shift_ms);
    assert_int_equal(fixture_run(&chaos.f, &o, "run", "--once", "-w", "2", NULL), 0);
    (void)strftime(told, sizeof told, "ts=%Y-%m-%dT", gmtime(&there));
    fixture_assert_contains(o.err, told); /* its clock was off */
    fixture_query_text(url,
                       "SELECT string_agg(s.user_id::text, ',') FROM ledgerlock.charges"
                       " JOIN ledgerlock.subscriptions AS s USING (subscription_id)",
                       said, sizeof said);
    assert_string_equal(said, "1");
    chaos_check_rows("now");
}

static void worker_clock_a_day_ahead_charges_nothing_early(void **state)
{
    (void)state;
    worker_a_day_off_charges_by_the_databases_clock(86400000);
}

static void worker_clock_a_day_behind_charges_nothing_late(void **state)
{
    (void)state;
    worker_a_day_off_charges_by_the_databases_clock(-86400000);
}

#define STORM_TEST(name, open) cmocka_unit_test_setup_teardown(name, open, chaos_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORM_TEST(crash_storm_is_slowed_down_and_given_up, chaos_open),
        STORM_TEST(lease_out_of_bounds_is_refused_with_the_bounds, chaos_open),
        STORM_TEST(worker_clock_a_day_ahead_charges_nothing_early, chaos_open_empty),
        STORM_TEST(worker_clock_a_day_behind_charges_nothing_late, chaos_open_empty),
    };

    fixture_need_servers();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
