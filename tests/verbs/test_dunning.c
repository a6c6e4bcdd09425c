/* dunning: what deposits and support do to subscriptions that were not paid. test_life
 * has a pool beside it. */
#include "tests/lib/client.h"
#include "tests/lib/runs.h"

/* Subscription i of user 1, of i times 1.00, began so many months and ten days ago. Its
 * first period was declined once, and it is past due until tomorrow. */
static void declined(int i, int months)
{
    world_do(
        "INSERT INTO subscriptions (subscription_id, user_id, plan, amount_minor, currency, anchor_at, unit, state, retries, next_due_at)"
        " SELECT %d, 1, 'p%d', 100 * %d, 'USD', at, 'month', 'past_due', 1, now() + interval '1 day'"
        " FROM CAST(now() - interval '%d months 10 days' AS timestamptz) AS at",
        i, i, i, months);
    world_do(
        "SELECT make_months(anchor_at, anchor_at) FROM subscriptions;"
        "INSERT INTO charges SELECT subscription_id, 0, 1, anchor_at, period_start(anchor_at, unit, every, 1),"
        " amount_minor, 'declined', 1, 5, 'hand', anchor_at FROM subscriptions WHERE subscription_id = %d",
        i);
}

static void prepare(void)
{
    client_open();
    world_do("INSERT INTO users (user_id, currency) VALUES (1, 'USD')");
}

WORLD(.role = "ledgerlock_owner", .also = prepare);

static void deposit(const char *key, int64_t amount)
{
    char sql[200];

    (void)snprintf(sql, sizeof sql, "SELECT deposit(1, 'USD', %" PRId64 ", '%s')",
                   amount, key);
    (void)ask(sql);
}

/* The numbers of those that are due, and how often each was tried. */
static const char due[] =
    "SELECT coalesce(string_agg(subscription_id || ' ' || retries, ', ' ORDER BY subscription_id), 'none')"
    " FROM subscriptions WHERE state = 'past_due' AND next_due_at <= now()";

CASE(deposit_makes_due_what_it_can_pay)
{
    declined(1, 0);
    deposit("little", 99);
    world_expect("none", due);
    deposit("rest", 1);
    world_expect("1 1", due);
    deposit("more", 500);
    world_expect("1", "SELECT count(*) FROM subscription_journal WHERE event = 'due'");
}

CASE(deposit_makes_due_no_more_than_it_can_pay)
{
    declined(1, 0);
    declined(2, 0);
    declined(3, 0);
    deposit("for two", 300);
    world_expect("1 1, 2 1", due);
}

CASE(deposit_leaves_others_alone)
{
    declined(1, 0);
    declined(2, 0);
    declined(3, 0);
    world_do(
        "UPDATE subscriptions SET state = (ARRAY['unpaid', 'parked', 'past_due'])[subscription_id]");
    deposit("for all", 1000);
    world_expect("3 1", due);
    world_expect("parked past_due unpaid",
                 "SELECT string_agg(state, ' ' ORDER BY state) FROM subscriptions");
}

CASE(resume_that_forgives_leaves_no_gap)
{
    declined(1, 2);
    world_do("UPDATE subscriptions SET state = 'unpaid'");
    assert_true(ask("SELECT resume_subscription(1, 1)"));
    world_expect(
        "0 waived 1, 1 waived 0",
        "SELECT string_agg(concat_ws(' ', period_no, state, tries), ', ' ORDER BY period_no) FROM charges");
    world_expect(
        "active 2 0",
        "SELECT concat_ws(' ', state, next_period_no, retries) FROM subscriptions WHERE next_due_at < now()");
}
