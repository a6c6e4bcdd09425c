/* payments: cards that the job charges at a stand-in of a gateway (labs/gateway). The
 * stand-in shares nothing with the program, and counts what it captured for each
 * period, whatever the keys were. The rules of each answer are told in tests/sql. */
#include "tests/lib/cards.h"

CARDS_GROUP();

static void fill(int n, int cards)
{
    cards_users(n, cards);
    cards_periods(n);
}

/* Guarantee: Billing by card takes each period once from the gateway, and nothing from
 * the wallet. */
CASE(cards_and_wallets_are_billed_in_one_run)
{
    fill(60, 40);
    world_says(0, "40 sent, 40 captured", "run --once");
    world_is(40, "SELECT count(*) FROM charges WHERE state = 'paid'");
    world_is(20, "SELECT count(*) FROM charges WHERE state = 'captured'");
    world_is(20 * 400, "SELECT sum(balance_minor)::bigint FROM users");
    cards_agree(40, 0);
    world_says(0, "0 sent", "run --once");
    cards_agree(40, 0);
}

/* Guarantee: run --once works periods that only become due when a card has paid the one
 * before. */
CASE(run_once_catches_up_by_card)
{
    fill(3, 3);
    world_do("UPDATE subscriptions SET next_due_at = next_due_at");
    world_do(
        "SELECT subscribe(1, 'days', 7, 'USD', 'day', 1, now() - interval '4 days',"
        " 0, 'k')");
    world_says(0, "8 captured", "run --once");
    cards_agree(8, 0);
}

/* Guarantee: A period that is due when a card has paid the one before is planned at
 * once, and waits for no poll. */
CASE(next_period_is_planned_when_the_one_before_is_paid)
{
    fixture_env("LEDGERLOCK_POOL_BILLING_POLL_MS", "60000");
    cards_users(1, 1);
    world_do(
        "SELECT subscribe(1, 'days', 7, 'USD', 'day', 1, now() - interval '9 days',"
        " 0, 'k')");
    pool_start("run --billing 1");
    cards_decided();
    cards_agree(10, 0);
}

/* Guarantee: Each period is captured once, whatever the gateway answers or does not. */
CASE_ROWS(each_period_is_captured_once_by_a_gateway_that, cards_faults, .every = 5)
{
    fixture_env("LEDGERLOCK_GATEWAY_TIMEOUT_MS", "1000");
    gateway_behaves(row->faults);
    fill(20, 20);
    pool_start("run --payments 2");
    cards_decided();
    cards_agree(20, 0);
    world_is(20, "SELECT count(*) FROM charges WHERE state = 'paid'");
}

/* Guarantee: An error that the gateway says it has stored is not asked for again: the
 * payment is looked up. */
CASE(stored_error_is_looked_up_at_once)
{
    fill(5, 5);
    gateway_behaves("fail_after=next:5");
    world_says(0, "10 sent, 5 captured", "run --once --payments 1");
    promise_int_equal(gateway_number("/_/calls", "replayed"), 0);
    cards_agree(5, 0);
}

static const struct {
    const char *name;
    int64_t ms;
} clocks[] = {{"almost_a_day_behind", -86000000}, {"a_day_ahead", 86400000}};

/* Guarantee: A payment is found at a gateway whose clock is a day off, and is captured
 * once. */
CASE_ROWS(payment_is_looked_up_where_the_clock_is, clocks)
{
    (void)gateway_stop(SIGKILL);
    gateway_again_at(row->ms);
    gateway_behaves("fail_after=next:5");
    fill(5, 5);
    world_says(0, "10 sent, 5 captured", "run --once --payments 1");
    cards_agree(5, 0);
}

/* Guarantee: A payment that was sent in one form of the gateway is neither sent nor
 * looked up in another: it is parked, and what to do is said. */
CASE(other_form_is_not_asked_under_the_same_key)
{
    fill(1, 1);
    world_runs(0, "run --once --jobs billing");
    gateway_behaves("drop_after=1");
    pool_start("run --jobs payments");
    world_wait("SELECT count(*) = 1 FROM ledgerlock.payments WHERE state = 'unknown'");
    pool_stop();
    gateway_behaves("drop_after=0");
    cards_hurry();
    fixture_env("LEDGERLOCK_GATEWAY_KIND", "stripe-charges");
    world_says(8, "0 captured", "run --once --jobs payments");
    world_says(0, "set gateway.kind back", "parked");
    fixture_env("LEDGERLOCK_GATEWAY_KIND", "stripe");
    world_is(1, "SELECT count(*) FROM release_rows('payments', ARRAY(SELECT payment_id"
                " FROM payments))");
    world_says(0, "1 captured", "run --once --jobs payments");
    cards_agree(1, 0);
}

/* Guarantee: A gateway that asks for a pause (Retry-After) is asked again after it. */
CASE(pause_that_the_gateway_asks_for_is_kept)
{
    fill(1, 1);
    gateway_behaves("rate_limit=next:1&retry_after_s=4");
    pool_start("run");
    world_wait("SELECT EXISTS (SELECT FROM ledgerlock.payments WHERE reason LIKE 'HTTP"
               " 429%%' AND due_at - at > interval '3900 ms')");
    cards_decided();
    cards_agree(1, 0);
}

/* Guarantee: A declined card is tried again on the schedule, but not one that is
 * declined for good, and nothing is captured. */
CASE(declined_cards_are_past_due_or_unpaid)
{
    fill(3, 3);
    world_do("SELECT pay_with(1, 'card', 'cus_declines_hard', 'pm_1'), "
             "pay_with(2, 'card', 'cus_declines_soft', 'pm_1')");
    world_says(0, "2 card_declined", "run --once");
    world_is(1, "SELECT count(*) FROM subscriptions WHERE state = 'past_due'");
    world_is(1, "SELECT count(*) FROM subscriptions WHERE state = 'unpaid'");
    world_is(1, "SELECT count(*) FROM payments WHERE state = 'declined' AND reason ="
                " 'stolen_card'");
    cards_agree(1, 0);
}

/* Guarantee: Workers that are killed while their calls are under way capture nothing
 * twice and lose nothing. */
CASE(killed_workers_capture_once)
{
    fixture_env("LEDGERLOCK_GATEWAY_TIMEOUT_MS", "20000");
    gateway_behaves("latency_ms=10000");
    fill(50, 50);
    pool_start("run --payments 1");
    for (int kills = 1; kills <= 3; kills++) {
        pid_t pid;

        world_wait("SELECT count(*) = 50 FROM ledgerlock.payments WHERE state = 'sent'"
                   " AND calls = %d",
                   kills);
        pid = pool_child(world.pool.pid, "payments:0");
        assert_int_not_equal(pid, 0);
        (void)kill(pid, SIGKILL);
    }
    gateway_behaves("latency_ms=0");
    cards_decided();
    cards_agree(50, 0);
    pool_logged(3, "payments.taken_over");
}

static const struct {
    const char *name, *place;
    bool is_planned; /* before the worker that is killed comes there */
} places[] = {
    {"before_the_plan_is_committed", "before_commit", false},
    {"between_plan_and_call", "before_lock", true},
    {"before_it_is_sent", "before_commit", true},
    {"after_it_is_sent", "after_commit", true},
    {"after_the_answer", "before_settle", true},
    {"after_it_is_settled", "after_settle", true},
};

/* Guarantee: A worker that is killed at any point around the call captures nothing
 * twice and loses nothing, also while the gateway loses answers. */
CASE_ROWS(payments_are_made_once_after_a_kill, places)
{
    char once[256], order[64];

    fill(20, 20);
    cards_orders(20, 2, 40);
    gateway_behaves("drop_after=0.2&fail_after=0.1&fail_before=0.1&half=0.1&conflict="
                    "0.1&rate_limit=0.1");
    fixture_env("LEDGERLOCK_GATEWAY_TIMEOUT_MS", "500");
    if (row->is_planned)
        world_runs(0, "run --once --jobs billing,orders");
    fixture_temporary(once, sizeof once, "once");
    (void)unlink(once);
    (void)snprintf(order, sizeof order, "%s=kill", row->place);
    fixture_env("LL_TEST_POINT", order);
    fixture_env("LL_TEST_POINT_ONCE", once);
    pool_start("run --billing 1 --orders 1 --payments 1");
    cards_decided_soon();
    pool_logged(1, "event=pool.worker_died");
    cards_agree(40, 0);
    world_is(0, "SELECT on_hand + held FROM stock");
    (void)unlink(once);
}

/* Guarantee: While the gateway is away nothing is lost, wallets are charged, and a
 * restart of it brings all of it. */
CASE(gateway_that_is_away_keeps_no_wallet_waiting)
{
    assert_int_not_equal(gateway_stop(SIGKILL), 0);
    fill(40, 30);
    pool_start("run");
    world_wait("SELECT count(*) = 10 FROM ledgerlock.charges WHERE state = 'captured'");
    world_wait("SELECT count(*) = 30 FROM ledgerlock.payments WHERE reason LIKE"
               " '%%connect%%' OR state = 'planned'");
    gateway_again("");
    cards_decided();
    cards_agree(30, 0);
}

/* Guarantee: Payments that a sick gateway left unknown are asked for again within two
 * seconds of its recovery, however often they were asked for before. */
CASE(unknown_payments_wait_for_seconds_alone_when_the_gateway_is_back)
{
    (void)gateway_stop(SIGKILL);
    fill(40, 40);
    world_says(0, "planned", "run --once --jobs billing");
    super_do("UPDATE ledgerlock.payments SET state = 'unknown', calls = 8,"
             " first_sent_at = now(), asked_at = now() - interval '1 hour'");
    pool_start("run --jobs payments --payments 1");
    world_wait(
        "SELECT count(*) >= 5 FROM ledgerlock.payments WHERE calls > 8 AND reason"
        " LIKE '%%connect%%' AND due_at - at <= interval '2 s'");
    gateway_again("");
    world_wait("SELECT count(*) >= 5 FROM ledgerlock.payments WHERE state = 'void'");
}

/* Guarantee: A key that is changed at the gateway is read again from its file, and the
 * payments that it refused meanwhile are made. */
CASE(rotated_key_is_read_again)
{
    FILE *file;

    (void)gateway_stop(SIGKILL);
    gateway_again("--api-key sk_test_2");
    fill(5, 5);
    pool_start("run");
    world_wait("SELECT count(*) = 5 FROM ledgerlock.payments WHERE reason LIKE 'HTTP"
               " 401%%'");
    file = fopen(cards_key_file, "w");
    assert_non_null(file);
    assert_true(fputs("sk_test_2\n", file) >= 0);
    assert_int_equal(fclose(file), 0);
    cards_decided();
    promise_int_equal(
        world_ask("SELECT count(*) FROM payments WHERE state = 'captured'"), 5);
}

/* ---- what is refused ---- */

static const struct {
    const char *name, *variable, *value, *says;
} settings[] = {
    {"that_has_no_url", "LEDGERLOCK_GATEWAY_URL", "", "gateway.url"},
    {"in_the_open", "LEDGERLOCK_GATEWAY_URL", "http://api.example.com", "https://"},
    {"of_another_scheme", "LEDGERLOCK_GATEWAY_URL", "ftp://127.0.0.1", "https://"},
    {"without_a_key", "LEDGERLOCK_GATEWAY_KEY_FILE", "", "gateway.key_file"},
    {"whose_key_is_missing", "LEDGERLOCK_GATEWAY_KEY_FILE", "/nowhere/key",
     "No such file"},
};

/* Guarantee: A gateway that cannot be used as it is set is named before the pool
 * starts.
 */
CASE_ROWS(pool_refuses_a_gateway, settings)
{
    fixture_env(row->variable, row->value);
    world_says(3, row->says, "run --once --jobs billing,payments");
}

/* Guarantee: A key that others may read, or one of the live mode, is used only where
 * the settings say so. */
CASE(keys_that_must_not_be_used)
{
    char path[256];

    fill(1, 1);
    fixture_file(path, sizeof path, "sk_test_1\n", 0644);
    fixture_env("LEDGERLOCK_GATEWAY_KEY_FILE", path);
    world_says(3, path, "run --once");
    fixture_file(path, sizeof path, "sk_live_1\n", 0600);
    fixture_env("LEDGERLOCK_GATEWAY_KEY_FILE", path);
    world_says(3, "live mode", "run --once");
    promise_int_equal(gateway_captures(), 0);
}

/* Guarantee: A request that the gateway refuses is parked, its pool says so, and a
 * person gives it back. */
CASE(refused_request_is_parked)
{
    char key[128];

    fill(2, 2);
    (void)snprintf(key, sizeof key, "%s",
                   world_text("SELECT 'll_' || encode(sha256(convert_to(instance_id ||"
                              " '/charge/1/0/1', 'UTF8')), 'hex') FROM instance"));
    gateway_pay(key); /* another request under its key */
    world_says(8, "1 captured", "run --once");
    world_says(0, "HTTP 400 idempotency_error", "parked");
    world_is(1, "SELECT count(*) FROM subscriptions WHERE state = 'paying'");
    world_is(1, "SELECT count(*) FROM release_rows('payments', ARRAY(SELECT payment_id"
                " FROM payments WHERE state = 'parked'))");
    world_is(1, "SELECT count(*) FROM payments WHERE state = 'unknown'");
}
