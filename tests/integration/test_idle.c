/* idle: a pool that has nothing to do sees what becomes due at its time, and costs next
 * to nothing while it waits. */
#include "tests/lib/idle_world.h"

/* ---- by polling ---- */

static void order_without_notifications_waits_for_a_poll(void **state)
{
    (void)state;
    start_pool(&pool, "400", "off");
    assert_int_equal(pool_listener(pool.pid), 0);
    fixture_pause_ms(500);
    assert_waits(600, 600, 37);
    stop_pool();
}

/* ---- by the clock ---- */

static void put_due_in(const char *interval)
{
    char sql[300];

    (void)snprintf(sql, sizeof sql,
                   "INSERT INTO ledgerlock.subscriptions (subscription_id, user_id, "
                   "plan, amount_minor, currency, anchor_at, unit, next_due_at) SELECT "
                   "1, 1, 'p', 100, 'USD', at, 'month', at FROM (SELECT now() + "
                   "interval '%s' AS at) AS x",
                   interval);
    command(sql);
}

static const char lateness[] =
    "SELECT (extract(epoch FROM charged_at - period_start) * 1000)::bigint FROM "
    "ledgerlock.charges";

/* The next poll would be much later. */
static void row_that_becomes_due_is_charged_at_its_time(void **state)
{
    (void)state;
    put_due_in("2 seconds");
    start_pool(&pool, "10000", "off");
    (void)await("SELECT count(*) FROM ledgerlock.charges", 6000);
    print_message("late by %" PRId64 " ms\n", ask(lateness));
    assert_in_range(ask(lateness), 0, LONG_POLL_MS / 5);
    stop_pool();
}

static void order_placed_for_later_is_served_at_its_time(void **state)
{
    (void)state;
    start_sleeping(&pool);
    command("SELECT ledgerlock.place_order(1, 'later', '[{\"sku\": \"hot\", \"qty\": "
            "1}]', now() + interval '1500 ms')");
    (void)await("SELECT count(*) FROM ledgerlock.orders WHERE state = 'fulfilled'",
                6000);
    assert_in_range(ask("SELECT (extract(epoch FROM decided_at - placed_at) * "
                        "1000)::bigint FROM ledgerlock.orders"),
                    0, LONG_POLL_MS / 5);
    stop_pool();
}

static void row_that_is_never_due_is_no_error(void **state)
{
    static struct fixture_output o;

    (void)state;
    command("INSERT INTO ledgerlock.subscriptions (user_id, plan, amount_minor, "
            "currency, anchor_at, unit, next_due_at, state) VALUES "
            "(1, 'never', 1, 'USD', '2024-01-01Z', 'day', 'infinity', 'past_due')");
    if (fixture_run(&f, &o, "run", "--once", NULL) != 0)
        fail_msg("exit %d: %s", o.code, o.err);
}

/* It sleeps for ten seconds, but a session that ends is a sign. */
static void worker_whose_session_ends_in_its_sleep_opens_another(void **state)
{
    char url[FIXTURE_URL];

    (void)state;
    start_pool(&pool, "10000", "off");
    fixture_pause_ms(1000);
    fixture_url_as(&f, "postgres", url, sizeof url);
    fixture_exec(url, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE "
                      "usename = 'ledgerlock_worker' AND datname = current_database()");
    (void)await("SELECT count(*) = 4 FROM pg_stat_activity WHERE usename = "
                "'ledgerlock_worker' AND datname = current_database()",
                5000);
    stop_pool();
}

/* ---- what it costs ---- */

/* With a fixed now no time comes: a row just ahead must not be waited for. */
static void pool_with_a_fixed_now_does_not_spin(void **state)
{
    (void)state;
    command("INSERT INTO ledgerlock.subscriptions (user_id, plan, amount_minor, "
            "currency, anchor_at, unit, next_due_at) VALUES (1, 'p', 100, 'USD', "
            "'2024-01-01T00:00:00.002Z', 'month', '2024-01-01T00:00:00.002Z')");
    fixture_spawn(&f, &pool, "run", "-w", "4", "--now", "2024-01-01T00:00:00Z", NULL);
    fixture_pause_ms(1500);
    assert_in_range(pool_asks(&f, 2500), 1, 20);
    stop_pool();
}

/* Four that each look for themselves would look 60 times. */
static void idle_workers_share_one_look(void **state)
{
    int asks;

    (void)state;
    start_pool(&pool, "200", "off");
    fixture_pause_ms(1000);
    asks = pool_asks(&f, 3000);
    print_message("seen to ask %d times in 3 s\n", asks);
    assert_in_range(asks, 8, 30);
    stop_pool();
}

static int64_t cpu_ns(pid_t pid)
{
    long long ns = 0;
    char path[64];
    FILE *file;

    (void)snprintf(path, sizeof path, "/proc/%ld/schedstat", (long)pid);
    file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%lld", &ns), 1);
    (void)fclose(file);
    return ns;
}

static int64_t pool_cpu_ns(void)
{
    pid_t pids[POOL_CHILDREN];
    size_t n = pool_children(pool.pid, pids);
    int64_t sum = cpu_ns(pool.pid) + cpu_ns(pool_listener(pool.pid));

    assert_int_equal(n, 4);
    for (size_t i = 0; i < n; i++)
        sum += cpu_ns(pids[i]);
    return sum;
}

static void idle_pool_takes_less_than_a_hundredth_of_a_core(void **state)
{
    int64_t before, used;

    (void)state;
    start_pool(&pool, "1000", "on");
    wait_asleep();
    before = pool_cpu_ns();
    fixture_pause_ms(4000);
    used = pool_cpu_ns() - before;
    print_message("idle: %" PRId64 " us of processor in 4 s\n", used / 1000);
    assert_in_range(used, 0, 40 * 1000000);
    stop_pool();
}

#define IDLE(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IDLE(order_without_notifications_waits_for_a_poll),
        IDLE(row_that_becomes_due_is_charged_at_its_time),
        IDLE(order_placed_for_later_is_served_at_its_time),
        IDLE(row_that_is_never_due_is_no_error),
        IDLE(worker_whose_session_ends_in_its_sleep_opens_another),
        IDLE(pool_with_a_fixed_now_does_not_spin),
        IDLE(idle_workers_share_one_look),
        IDLE(idle_pool_takes_less_than_a_hundredth_of_a_core),
    };

    fixture_need_servers();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
