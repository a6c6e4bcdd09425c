/* gateway_limits: how many calls a worker makes, and what it holds meanwhile. */
#include "tests/lib/cards.h"

CARDS_GROUP();

/* Guarantee: A worker has no more calls to the gateway under way than gateway.calls. */
CASE(calls_under_way_are_limited)
{
    fixture_env("LEDGERLOCK_GATEWAY_CALLS", "3");
    gateway_behaves("latency_ms=20");
    cards_users(30, 30);
    cards_periods(30);
    world_says(0, "30 captured", "run --once --payments 1");
    cards_agree(30, 0);
    promise_int_equal(
        world_ask("SELECT max(n) FROM (SELECT count(*) AS n FROM payments AS a JOIN"
                  " payments AS b ON b.first_sent_at <= a.first_sent_at AND b.at >"
                  " a.first_sent_at GROUP BY a.payment_id) AS together"),
        3);
}

/* Guarantee: A worker begins no more calls in a second than gateway.rate. */
CASE(calls_of_a_second_are_limited)
{
    fixture_env("LEDGERLOCK_GATEWAY_RATE", "4");
    cards_users(12, 12);
    cards_periods(12);
    world_says(0, "12 captured", "run --once --payments 1");
    cards_agree(12, 0);
    promise_true(world_ask("SELECT (extract(epoch FROM max(first_sent_at) -"
                           " min(first_sent_at)) * 1000)::bigint FROM payments") >=
                 2000);
}

/* Guarantee: A gateway whose answers decide nothing is asked one call at a time, until
 * it is well. */
CASE(sick_gateway_is_asked_one_call_at_a_time)
{
    gateway_behaves("unavailable=1&reads=1");
    cards_users(40, 40);
    cards_periods(40);
    world_runs(0, "run --once --jobs billing");
    pool_start("run --payments 1");
    world_wait("SELECT count(*) = 40 FROM ledgerlock.payments WHERE reason = 'HTTP"
               " 503 api_error'");
    for (int i = 0; i < 20; i++) {
        cards_hurry();
        promise_true(world_ask("SELECT count(*) FROM payments WHERE state = 'sent'") <=
                     1);
        fixture_pause_ms(50);
    }
    gateway_behaves("unavailable=0");
    cards_decided_soon();
    cards_agree(40, 0);
    world_is(40, "SELECT count(*) FROM charges WHERE state = 'paid'");
}

/* Guarantee: No transaction and no lock of a row is open while the gateway is called.
 */
CASE(nothing_is_open_in_the_database_during_a_call)
{
    fixture_env("LEDGERLOCK_GATEWAY_TIMEOUT_MS", "300000");
    gateway_behaves("slow=1&slow_ms=600000");
    cards_users(5, 5);
    cards_orders(5, 1, 5);
    pool_start("run --payments 1");
    gateway_wait("/_/calls", "received", 5);
    world_wait("SELECT count(*) = 0 FROM pg_stat_activity WHERE datname ="
               " current_database() AND state LIKE 'idle in transaction%%'");
    world_is(5, "SELECT count(*) FROM (SELECT FROM users FOR UPDATE NOWAIT) AS free");
    world_is(1, "SELECT count(*) FROM (SELECT FROM stock FOR UPDATE NOWAIT) AS free");
    world_is(5, "SELECT count(*) FROM payments WHERE state = 'sent'");
    (void)gateway_stop(SIGKILL);
    gateway_again("");
    cards_decided_soon();
    cards_agree(5, 0);
}

/* Guarantee: A key of the live mode is used where the settings say that it is meant. */
CASE(live_key_is_used_where_it_is_meant)
{
    char path[256];

    cards_users(1, 1);
    cards_periods(1);
    fixture_file(path, sizeof path, "sk_live_1\n", 0600);
    fixture_env("LEDGERLOCK_GATEWAY_KEY_FILE", path);
    fixture_env("LEDGERLOCK_GATEWAY_LIVE", "true");
    pool_start("run");
    world_wait("SELECT count(*) = 1 FROM ledgerlock.payments WHERE reason LIKE"
               " 'HTTP 401%%'");
}
