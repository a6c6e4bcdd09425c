/* changes: pauses, cancellations and prorations, as support makes them. */
#include "tests/lib/client.h"

/* Subscription 1 runs in a period of ten days that began two days and an hour ago, and
 * is paid. */
static void prepare(void)
{
    client_open();
    world_user(1, 300);
    world_user(2, 0);
    world_do(
        "INSERT INTO subscriptions (subscription_id, user_id, plan, amount_minor, currency, anchor_at, unit, every, next_due_at)"
        " SELECT 1, 1, 'p', 100, 'USD', at, 'day', 10, at FROM CAST(now() - interval '49 hours' AS timestamptz) AS at");
    world_do(
        "SELECT make_months(anchor_at, now()) FROM subscriptions;"
        "INSERT INTO charges SELECT 1, 0, 1, anchor_at, anchor_at + interval '10 days', 100, 'captured', 1, 5, 'hand', anchor_at FROM subscriptions;"
        "INSERT INTO transfers SELECT 'charge', 1, 0, 1, anchor_at, 'wallet', 'subscription_revenue', 100, 'USD', anchor_at FROM subscriptions;"
        "INSERT INTO batches (job, token, worker, at, done, refused, ids, periods, feed_no)"
        " SELECT 'billing', 5, 'hand', anchor_at, 1, 0, '{1}', '{0}', 1 FROM subscriptions;"
        "UPDATE subscriptions SET next_period_no = 1, next_due_at = anchor_at + interval '10 days';"
        "UPDATE users SET balance_minor = 200, fence = 5 WHERE user_id = 1");
}

WORLD(.role = "ledgerlock_owner", .also = prepare);

static void audit(void)
{
    world_runs(0, "audit --lag 0s");
}

static const char stands[] =
    "SELECT format('%s %s %s', state, next_period_no, extract(day FROM next_due_at - anchor_at)) FROM subscriptions";

/* ---- pause ---- */

CASE(pause_from_a_named_period_is_made_once)
{
    assert_true(
        ask("SELECT pause_subscription(1, 1, 2, 1) = pause_subscription(1, 1, 2, 1)"));
    world_expect("active 3 30", stands);
    refused("LL002", "SELECT pause_subscription(1, 1, 3, 1)");
    refused("LL002", "SELECT pause_subscription(1, 1, 1, 7)");
}

CASE(pause_of_what_is_tried_or_over_is_refused)
{
    refused("LL002", "SELECT pause_subscription(1, 1, 0, 1)");
    refused("LL002", "SELECT pause_subscription(1, 1, 1, NULL)");
    refused("LL002", "SELECT pause_subscription(2, 1, 1, 1)");
    world_do("UPDATE subscriptions SET cancel_at = next_due_at + interval '10 days'");
    refused("LL003", "SELECT pause_subscription(1, 1, 2, 1)");
    refused("00000", "SELECT pause_subscription(1, 1, 1, 1)");
    world_do("UPDATE subscriptions SET state = 'past_due', retries = 1");
    refused("LL003", "SELECT pause_subscription(1, 1, 1, 2)");
}

/* ---- cancel ---- */

/* Guarantee: A subscription that is cancelled now is cancelled at once, up to what is
 * paid. */
CASE(cancel_now_ends_it_at_once)
{
    assert_true(ask("SELECT cancel_subscription(1, 1) > now() + interval '7 days'"));
    world_expect("active 1 10", stands);
    assert_true(
        ask("SELECT cancel_subscription(1, 1, 'now') > now() + interval '7 days'"));
    world_expect("cancelled 1 10", stands);
    assert_true(
        ask("SELECT cancel_subscription(1, 1, 'now') > now() + interval '7 days'"));
    world_is(
        2,
        "SELECT count(*) FROM subscription_journal WHERE event IN ('cancel_set', 'cancelled')");
    refused("LL002", "SELECT cancel_subscription(1, 1, 'soon')");
    audit();
}

CASE(cancel_now_gives_up_what_has_begun)
{
    world_do(
        "SET ledgerlock.repair = on; INSERT INTO subscriptions (subscription_id, user_id, plan, amount_minor, currency, anchor_at,"
        " unit, next_due_at) VALUES (2, 1, 'q', 100, 'USD', now() - interval '1 hour', 'month', now() - interval '1 hour')");
    assert_true(ask("SELECT cancel_subscription(1, 2, 'now') < now()"));
    world_runs(0, "run --once --jobs billing");
    world_is(0, "SELECT count(*) FROM charges WHERE subscription_id = 2");
    audit();
}

/* ---- proration ---- */

#define CHANGE(words, key) "SELECT change_now(1, 1, " words ", '" key "')"

/* Seven whole days of ten are left. */
/* Guarantee: Terms that change in a paid period charge or give back the difference for
 * the whole days that are left, once per key, and count from the next period on. */
CASE(change_in_a_paid_period_is_prorated)
{
    assert_int_equal(ask(CHANGE("'duo', 2, 80", "up")), 42);
    assert_int_equal(ask(CHANGE("'duo', 2, 80", "up")), 42);
    assert_int_equal(ask(CHANGE("'solo', 1, 10", "down")), -105);
    world_is(263, "SELECT balance_minor FROM users WHERE user_id = 1");
    world_expect("10 solo", "SELECT amount_minor || ' ' || plan FROM terms_of(1, 1)");
    world_expect(
        "wallet 42, subscription_revenue 105",
        "SELECT string_agg(debit || ' ' || amount_minor, ', ' ORDER BY source) FROM transfers WHERE kind = 'proration'");
    refused("LL001", CHANGE("'duo', 2, 81", "up"));
    audit();
    world_says(0, "0.37", "report --csv");
}

CASE(change_that_costs_nothing_moves_nothing)
{
    assert_int_equal(ask(CHANGE("'other', 1, 100", "k")), 0);
    world_is(0, "SELECT count(*) FROM transfers WHERE kind = 'proration'");
    world_expect("other", "SELECT plan FROM terms_of(1, 1)");
    audit();
}

CASE(change_that_the_wallet_cannot_pay_is_refused)
{
    refused("LL003", CHANGE("'duo', 1, 387", "k"));
    world_is(0, "SELECT count(*) FROM subscription_terms");
    assert_int_equal(ask(CHANGE("'duo', 1, 386", "k")), 200);
    audit();
}

CASE(change_without_a_paid_period_is_refused)
{
    refused("LL002", "SELECT change_now(2, 1, 'p', 1, 1, 'k')");
    refused("LL002", CHANGE("'p', 1, 1", ""));
    refused("LL002", CHANGE("'p', 0, 1", "k"));
    world_do("SELECT pause_subscription(1, 1, 1, 1)");
    refused("LL003", CHANGE("'p', 1, 1", "k"));
    world_do("SELECT cancel_subscription(1, 1, 'now')");
    refused("LL003", CHANGE("'p', 1, 1", "k"));
}

CASE(change_that_gives_back_pays_what_is_past_due)
{
    world_do("SELECT deposit(1, 'USD', 1, 'l')");
    world_do(
        "INSERT INTO subscriptions (subscription_id, user_id, plan, amount_minor, currency, anchor_at, unit, next_due_at)"
        " VALUES (2, 1, 'q', 205, 'USD', now() - interval '1 hour', 'month', now() - interval '1 hour')");
    world_runs(0, "run --once --jobs billing");
    world_is(1, "SELECT count(*) FROM subscriptions WHERE state = 'past_due'");
    (void)ask(CHANGE("'p', 1, 50", "k"));
    world_runs(0, "run --once --jobs billing");
    world_is(0, "SELECT count(*) FROM subscriptions WHERE state = 'past_due'");
    audit();
}

/* Guarantee: A proration is rounded to the nearest minor unit, and from the middle in
 * favour of the customer. */
CASE(proration_is_rounded_in_favour_of_the_customer)
{
    world_expect(
        "2 3 2 -3 -2 -3 0 0 -1",
        "SELECT concat_ws(' ', prorated(0, 5, 1, 2), prorated(0, 26, 1, 10), prorated(0, 24, 1, 10),"
        " prorated(5, 0, 1, 2), prorated(24, 0, 1, 10), prorated(26, 0, 1, 10), prorated(1, 1, 3, 7),"
        " prorated(0, 1, 1, 2), prorated(1, 0, 1, 2))");
    world_expect(
        "9223372036854775807 -6148914691236517205",
        "SELECT concat_ws(' ', prorated(0, 9223372036854775807, 30, 30), prorated(9223372036854775807, 0, 20, 30))");
}
