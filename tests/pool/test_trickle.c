/* trickle: rows that come due one by one are worked together, and none waits for it. */
#include "tests/lib/idle_world.h"
#include "tests/lib/shop.h"
#include "tests/lib/steps.h"

enum { ROWS = 400, APART_MS = 5, USERS = 20, BATCHES_MAX = ROWS / 2 };

/* Every 5 ms another one comes due, of one user after the other, from a second and a
 * half after now. */
static void put_rows(void)
{
    world_do(INTO_SUBSCRIPTIONS
             "SELECT g, 1 + g %% %d, 'p', 100, 'USD', at,"
             " 'month', at FROM generate_series(1, %d) AS g, LATERAL (SELECT now() +"
             " interval '1500 ms' + g * interval '%d ms' AS at) AS x",
             USERS, ROWS, APART_MS);
}

static void undo(void)
{
    shop_let_go();
}

WORLD(.work = &plenty, .poll_ms = POLL_MS, .undo = undo);

CASE(rows_that_come_due_one_by_one_are_charged_together)
{
    int64_t batches;

    put_rows();
    start_pool("4");
    world_wait("SELECT count(*) = 400 FROM ledgerlock.charges");
    batches = world_ask("SELECT count(DISTINCT fence) FROM ledgerlock.charges");
    print_message("%d rows in %" PRId64 " batches\n", ROWS, batches);
    assert_in_range(batches, 1, BATCHES_MAX);
    assert_soon("charged_at", "period_start", "charges");
    stop_pool();
}

/* Guarantee: A row whose user or SKU somebody else holds waits, keeps no other waiting,
 * and is worked when it is free. */
CASE(row_that_is_busy_keeps_no_other_waiting)
{
    put_rows();
    shop_hold("SELECT FROM users WHERE user_id = 1 FOR UPDATE");
    start_pool("4");
    world_wait("SELECT count(*) = 380 FROM ledgerlock.charges");
    assert_soon("charged_at", "period_start", "charges");
    world_is(0, "SELECT count(*) FROM ledgerlock.charges WHERE user_id = 1");
    shop_let_go();
    world_wait("SELECT count(*) = 400 FROM ledgerlock.charges");
    stop_pool();
}
