/* idle: a pool that has nothing to do sees what becomes due within a poll, and costs
 * next to nothing while it waits. */
#include "tests/lib/idle_world.h"
#include "tests/lib/steps.h"

/* ---- how soon ---- */

WORLD(.work = &plenty, .poll_ms = POLL_MS);

WORLD_OPEN(open_as_shipped, .work = &plenty)

static const char all_done[] =
    "SELECT (SELECT count(*) FROM ledgerlock.charges) = 9 AND (SELECT count(*) FROM "
    "ledgerlock.orders WHERE state = 'fulfilled') = 9";

/* Nine rows of each job, far enough apart that the pool is idle before each. */
/* Guarantee: A row is worked within a poll of the time at which it is due. */
CASE(rows_that_become_due_are_worked_within_a_poll)
{
    world_do(INTO_ANY_SUBSCRIPTIONS
             "SELECT g, 'p', 100, 'USD', at, 'month', at FROM"
             " generate_series(1, 9) AS g, LATERAL (SELECT now() + interval '2 s' + g"
             " * interval '570 ms' AS at) AS t");
    world_do("SELECT ledgerlock.place_order(g, 'later', '[{\"sku\": \"hot\", \"qty\": "
             "1}]', now() + interval '2 s' + g * interval '570 ms') FROM "
             "generate_series(1, 9) AS g");
    start_pool("4");
    world_wait(all_done);
    assert_soon("charged_at", "period_start", "charges");
    assert_soon("decided_at", "placed_at", "orders");
    stop_pool();
}

/* ---- what it costs ---- */

/* With a fixed now no time comes: a row just ahead must not be waited for. */
CASE(pool_with_a_fixed_now_does_not_spin)
{
    world_do(INTO_ANY_SUBSCRIPTIONS
             "VALUES (1, 'p', 100, 'USD',"
             " '2024-01-01T00:00:00.002Z', 'month', '2024-01-01T00:00:00.002Z')");
    pool_start("run -w 4 --jobs billing --now 2024-01-01T00:00:00Z");
    fixture_pause_ms(1500);
    assert_in_range(pool_asks(2500), 1, 60); /* 5, if nobody is late */
    stop_pool();
}

/* The job is polled 12 times in 6 s, whatever the number of its workers; eight that
 * each polled so often would be seen 96 times. */
CASE(idle_workers_share_the_polls)
{
    int asks;

    pool_start("run -w 8 --jobs billing");
    pool_log_wait(&world.pool, "event=pool.started");
    fixture_pause_ms(1000);
    asks = pool_asks(6000);
    print_message("seen to ask %d times in 6 s\n", asks);
    assert_in_range(asks, 1, 48);
    stop_pool();
}

#define POLL_A_MINUTE "60000"

/* A worker reports every five seconds; a silence that comes near to its poll fails. */
static bool are_seen_since(const char *time)
{
    promise_int_equal(world_ask("SELECT count(*) FROM workers WHERE seen_at >"
                                " clock_timestamp() - interval '40 seconds'"),
                      13);
    return world_ask("SELECT (min(seen_at) > '%s')::int FROM workers", time) == 1;
}

/* Guarantee: Each worker that has nothing to do is counted among those that live,
 * however seldom its job is polled and however many there are, and keeps its session.
 */
CASE(workers_that_poll_once_a_minute_live_and_keep_their_sessions)
{
    char since[64];

    fixture_env("LEDGERLOCK_POOL_BILLING_POLL_MS", POLL_A_MINUTE);
    fixture_env("LEDGERLOCK_POOL_ORDERS_POLL_MS", POLL_A_MINUTE);
    pool_start("run -w 12");
    world_wait("SELECT count(*) = 13 FROM ledgerlock.workers");
    for (int beats = 0; beats < 3; beats++) {
        (void)snprintf(since, sizeof since, "%s",
                       world_text("SELECT clock_timestamp()"));
        FIXTURE_AWAIT(are_seen_since(since), "%s", "a worker is silent");
    }
    world_is(13, "SELECT count(*) FROM live_workers");
    world_runs(0, "status --json");
    assert_true(said_number("jobs/billing/workers") == 12);
    stop_pool();
    pool_logged(0, "event=pool.postgres_down");
}

static int64_t cpu_ns(pid_t pid)
{
    return strtoll(pool_proc(pid, "schedstat"), NULL, 10);
}

static int64_t pool_cpu_ns(void)
{
    pid_t pids[POOL_CHILDREN];
    size_t n = pool_children(world.pool.pid, pids);
    int64_t sum = cpu_ns(world.pool.pid);

    assert_int_equal(n, 4);
    for (size_t i = 0; i < n; i++)
        sum += cpu_ns(pids[i]);
    return sum;
}

CASE(idle_pool_takes_less_than_a_hundredth_of_a_core, .open = open_as_shipped)
{
    int64_t before, used, since;

    start_pool("3");
    fixture_pause_ms(1000);
    before = pool_cpu_ns();
    since = fixture_now_ms();
    fixture_pause_ms(4000);
    used = pool_cpu_ns() - before;
    since = fixture_now_ms() - since;
    print_message("idle: %" PRId64 " us of processor in %" PRId64 " ms\n", used / 1000,
                  since);
    assert_in_range(used, 0, since * 10000);
    stop_pool();
}
