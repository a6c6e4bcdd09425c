/* trickle: rows that come due one by one are worked together, and none waits for it. */
#include "tests/lib/idle_world.h"

enum { ROWS = 400, APART_MS = 5, USERS = 20, BATCHES_MAX = ROWS / 2 };

/* Every 5 ms another one comes due, of one user after the other, from a second and a
 * half after now. */
static void put_rows(void)
{
    char sql[500];

    (void)snprintf(
        sql, sizeof sql,
        "INSERT INTO ledgerlock.subscriptions (subscription_id, user_id, plan, "
        "amount_minor, currency, anchor_at, unit, next_due_at) SELECT g, 1 + g %% %d, "
        "'p', 100, 'USD', at, 'month', at FROM generate_series(1, %d) AS g, LATERAL "
        "(SELECT now() + interval '1500 ms' + g * interval '%d ms' AS at) AS x",
        USERS, ROWS, APART_MS);
    command(sql);
}

static int64_t latest_ms(void)
{
    return ask("SELECT (extract(epoch FROM max(charged_at - period_start)) * "
               "1000)::bigint FROM ledgerlock.charges");
}

static void rows_that_come_due_one_by_one_are_charged_together(void **state)
{
    int64_t batches;

    (void)state;
    put_rows();
    start_pool(&pool, "1000", "off");
    (void)await("SELECT count(*) = 400 FROM ledgerlock.charges", 15000);
    batches = ask("SELECT count(DISTINCT fence) FROM ledgerlock.charges");
    print_message("%d rows in %" PRId64 " batches, the latest %" PRId64 " ms late\n",
                  ROWS, batches, latest_ms());
    assert_in_range(batches, 1, BATCHES_MAX);
    assert_in_range(latest_ms(), 0, 5 * NOTIFIED_MS);
    stop_pool();
}

static void row_that_is_busy_keeps_no_other_waiting(void **state)
{
    (void)state;
    put_rows();
    command("BEGIN");
    command("SELECT FROM ledgerlock.users WHERE user_id = 1 FOR UPDATE");
    start_pool(&pool, "1000", "off");
    (void)await("SELECT count(*) = 380 FROM ledgerlock.charges", 15000);
    assert_in_range(latest_ms(), 0, 5 * NOTIFIED_MS);
    assert_int_equal(ask("SELECT count(*) FROM ledgerlock.charges WHERE user_id = 1"),
                     0);
    command("COMMIT");
    (void)await("SELECT count(*) = 400 FROM ledgerlock.charges", 5000);
    stop_pool();
}

#define TRICKLE(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRICKLE(rows_that_come_due_one_by_one_are_charged_together),
        TRICKLE(row_that_is_busy_keeps_no_other_waiting),
    };

    fixture_need_servers();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
