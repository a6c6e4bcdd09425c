/* calls_in_doubt: what happens to the servers and to the holder of a lock while calls
 * to the payment gateway are under way, and another pool comes for the same payments.
 */
#include "tests/lib/cards.h"
#include "tests/lib/private_pg.h"

enum { USERS = 6 }; /* with a period each, and as many with an order */

static pid_t frozen;

static void forget_locks(void)
{
    (void)redis_do("FLUSHALL");
}

static void restart_redis(void)
{
    fixture_redis_kill(&world.redis);
    pool_redis_start(&world.redis);
}

static void crash_postgres(void)
{
    private_pg_kill(&private_pg);
    private_pg_start(&private_pg);
}

static void freeze_holder(void)
{
    frozen = pool_child(world.pool.pid, "payments:0");
    assert_int_equal(kill(frozen, SIGSTOP), 0);
}

/* The stand-in reads its journal, and knows nothing of calls that it had not run. */
static void restart_gateway(void)
{
    (void)gateway_stop(SIGKILL);
    gateway_again("");
}

static const struct world_plan world_plan = {.lease_ms = 2000, .redis = true};

static void open_all(void)
{
    gateway_open();
    world_open();
    (void)gateway_use();
}

static void close_all(void)
{
    if (frozen > 0)
        (void)kill(frozen, SIGCONT);
    frozen = 0;
    cards_close();
}

GROUP(.plan = &world_plan,
      .start = private_pg_begin,
      .stop = private_pg_end,
      .open = open_all,
      .end = world_end,
      .close = close_all);

/* The call is longer than the lease; run_at: the part of its latency, in percent, after
 * which money is taken. The other pool asks again (`asks`) where no answer can come in
 * time, and gets what the first one got. */
static const struct {
    const char *name;
    void (*happens)(void);
    const char *timeout_ms, *run_at, *logged;
    bool asks;
} faults[] = {
    {"redis_forgot_the_locks", forget_locks, "30000", "50", "code=LL-6102", false},
    {"redis_was_restarted", restart_redis, "30000", "50", "code=LL-6102", false},
    {"postgres_crashed", crash_postgres, "30000", "50", NULL, false},
    {"the_holder_was_frozen", freeze_holder, "1000", "0", NULL, true},
    {"the_gateway_died_after_the_charge", restart_gateway, "30000", "0", NULL, true},
    {"the_gateway_died_before_the_charge", restart_gateway, "30000", "100", NULL,
     false},
};

/* Guarantee: Payments whose calls are under way are captured once each, and no order is
 * sold for nothing, when Redis forgets the locks, a server crashes, the gateway dies,
 * or the holder stands still until another pool has asked for the same. */
CASE_ROWS(payments_are_captured_once_when, faults)
{
    char behaviour[64];

    fixture_env("LEDGERLOCK_GATEWAY_TIMEOUT_MS", row->timeout_ms);
    (void)snprintf(behaviour, sizeof behaviour, "latency_ms=6000&run_at=%s",
                   row->run_at);
    gateway_behaves(behaviour);
    cards_users(2 * USERS, 2 * USERS);
    cards_orders(USERS, 2, 2 * USERS - 2);
    world_do(
        INTO_ANY_SUBSCRIPTIONS
        "SELECT u, 'p', 100, 'USD', at, 'month', at FROM generate_series(%d, %d) AS"
        " u, (SELECT now() - interval '5 days') AS t (at)",
        USERS + 1, 2 * USERS);
    pool_start("run --payments 1");
    world_wait("SELECT count(*) = %d FROM ledgerlock.payments WHERE state = 'sent'",
               2 * USERS - 1);
    row->happens();
    gateway_behaves("latency_ms=0");
    starts(&world.f, &world.others, "run --payments 1");
    cards_decided();
    if (frozen > 0)
        assert_int_equal(kill(frozen, SIGCONT), 0);
    if (row->logged != NULL)
        pool_log_wait(&world.pool, row->logged);
    pool_end(&world.others);
    pool_stop();
    cards_agree(2 * USERS - 1, 0);
    promise_true((gateway_number("/_/calls", "replayed") > 0) == row->asks);
    world_is(0, "SELECT on_hand FROM stock");
    world_is(1, "SELECT count(*) FROM orders WHERE reason = 'out_of_stock'");
}
