/* pool: its servers go away in the middle of the work: it stays up, says so once,
 * charges nothing meanwhile, resumes by itself, and the totals are exact. */
#include "tests/lib/fault.h"
#include "tests/lib/private_pg.h"
#include "tests/lib/steps.h"

static void undo(void)
{
    if (private_pg.pid == 0)
        private_pg_start(&private_pg);
}

static const struct load_size size = {
    .users = 120, .subscriptions = 160, .orders = 150, .periods = 12};
static const struct world_plan world_plan = {FAULT_PLAN, .load = &size, .undo = undo};
GROUP(.plan = &world_plan,
      .start = private_pg_begin,
      .stop = private_pg_end,
      GROUP_OF_WORLD);

/* ---- faults ---- */

static void kill_postgres(bool on)
{
    if (on) {
        private_pg_kill(&private_pg);
        return;
    }
    fixture_pause_ms(1000);
    pool_logged(0, "event=pool.postgres_up");
    private_pg_start(&private_pg);
}

static void end_sessions(bool on)
{
    int64_t ended = 0;

    while (on && ended < 8) {
        ended += fixture_query_int8(
            private_pg.url,
            "SELECT count(*) FROM (SELECT pg_terminate_backend(pid) FROM"
            " pg_stat_activity WHERE application_name LIKE"
            " 'ledgerlock worker%') AS t");
        fixture_pause_ms(100);
    }
}

static void swallow(bool on)
{
    proxy_swallow(&world.to_postgres, on);
    if (on)
        assert_true(proxy_wait(&world.to_postgres, PROXY_SWALLOWED, 5, 60));
}

/* The last flush finds work, too: there is much more than can be done meanwhile. */
static void flush(bool on)
{
    for (int i = 0; on && i < 8; i++) {
        gate_feed();
        fault_redis_ok("FLUSHALL");
        fixture_pause_ms(90);
    }
}

#define POSTGRES .down = "event=pool.postgres_down", .up = "event=pool.postgres_up"
#define REDIS .down = "event=pool.redis_down", .up = "event=pool.redis_up"

static const struct fault faults[] = {
    {"postgres_is_killed", kill_postgres, POSTGRES},
    {"all_sessions_are_ended", end_sessions, .up = NULL},
    {"postgres_is_silent", swallow, POSTGRES, .is_still = true},
    /* A refusal is neither free nor busy: no batch until the rights are back. */
    {"redis_takes_the_rights_away", NULL, "ACL SETUSER default -evalsha",
     "ACL SETUSER default +@all", REDIS, .is_still = true},
    {"redis_is_flushed_ten_times_a_second", flush, .up = NULL},
};

/* Not by every worker at every try; one may be refused again after the first `up`. */
static void assert_said(const char *down, const char *up)
{
    unsigned n = pool_log_count(&world.pool, down);

    assert_in_range(n, 1, 3);
    assert_in_range(pool_log_count(&world.pool, up), 1, n);
}

/* Guarantee: PostgreSQL is killed or silent, all sessions are ended, Redis is flushed
 * or takes the rights away, in the middle of the work: the same workers go on by
 * themselves, every outcome is settled, totals are exact, and incidents tell what the
 * counters tell. */
CASE_ROWS(pool_resumes_after, faults)
{
    fault_happens(row);
    pool_logged(0, "event=commit.unsettled");
    if (row->down != NULL)
        assert_said(row->down, row->up);
}

/* ---- Redis ---- */

static int64_t fences_above(int64_t fence)
{
    return world_ask("SELECT (SELECT count(*) FROM charges WHERE fence > %" PRId64
                     ") + (SELECT count(*) FROM orders WHERE fence > %" PRId64 ")",
                     fence, fence);
}

/* Guarantee: Without Redis nothing is charged, the pool says so, and goes on with
 * higher tokens when Redis is back. */
CASE(redis_restart_empty_pool_resumes_with_higher_tokens)
{
    int64_t done, fence;

    fault_start_midway();
    fixture_redis_kill(&world.redis);
    pool_log_wait(&world.pool, "event=pool.redis_down");
    fault_assert_still();
    fault_assert_midway();
    done = pool_work_done();
    fence = world_ask("SELECT greatest((SELECT max(fence) FROM charges), (SELECT"
                      " max(fence) FROM orders))");
    assert_int_equal(fences_above(fence), 0);
    fault_redis_start(NULL, NULL);
    fault_recovers();
    pool_log_wait(&world.pool, "event=pool.redis_up");
    assert_true(fences_above(fence) >= pool_work_done() - done);
    fault_end();
}

/* Guarantee: A pool that starts without Redis says so and exits 5. */
CASE(fail_closed_redis_down_at_start_says_so_and_exits_5)
{
    fixture_redis_kill(&world.redis);
    world_says(5, world.redis.dir, "run --once");
    assert_int_equal(pool_work_done(), 0);
}

/* Guarantee: A Redis that refuses the password at start is named, and nothing is
 * charged. */
CASE(fail_closed_wrong_password_at_start_says_so_and_charges_nothing)
{
    char path[128];

    fault_redis_ok("CONFIG SET requirepass right"); /* and no longer ours */
    fixture_env("LEDGERLOCK_REDIS_PASSWORD_FILE", NULL);
    world_says(5, "NOAUTH", "run --once");
    fixture_file(path, sizeof path, "wrong", 0600);
    fixture_env("LEDGERLOCK_REDIS_PASSWORD_FILE", path);
    world_says(5, "refused the password", "run --once");
    assert_int_equal(pool_work_done(), 0);
    (void)unlink(path);
}
