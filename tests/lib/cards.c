/* cards: fills worlds whose users pay by card, and compares them with the gateway. */
#include "tests/lib/cards.h"

const char *cards_key_file;

const struct cards_fault cards_faults[CARDS_FAULT_CT] = {
    {"drops_the_answer", "drop_after=next:10"},
    {"stores_an_error_after_the_charge", "fail_after=next:10"},
    {"stores_an_error_before_the_charge", "fail_before=next:10"},
    {"sends_half", "half=next:10"},
    {"never_answers", "hang=next:10"},
    {"answers_html", "html=next:10"},
    {"answers_without_end", "no_end=next:10"},
    {"redirects", "redirect=next:10"},
    {"is_unavailable", "unavailable=next:10"},
    {"limits_the_rate", "rate_limit=next:10"},
    {"says_that_the_key_is_in_use", "conflict=next:10"},
    {"drops_the_call", "drop_before=next:10"},
    {"is_slow", "slow=next:10&slow_ms=3000"},
    {"has_a_clock_a_day_off", "date_off=1"},
};

void cards_open(void)
{
    gateway_open();
    world_open();
    cards_key_file = gateway_use();
    fixture_env("LEDGERLOCK_GATEWAY_TIMEOUT_MS", "2000");
}

void cards_close(void)
{
    world_close();
    gateway_close();
}

void cards_users(int n, int cards)
{
    world_do(INTO_USERS "SELECT u, 'USD' FROM generate_series(1, %d) AS u", n);
    world_do("SELECT deposit(u, 'USD', 500, 'k') FROM generate_series(%d, %d) AS u",
             cards + 1, n);
    world_do("SELECT pay_with(u, 'card', 'cus_' || u, 'pm_' || u) FROM"
             " generate_series(1, %d) AS u",
             cards);
}

void cards_periods(int n)
{
    world_do(INTO_ANY_SUBSCRIPTIONS
             "SELECT u, 'p', 100, 'USD', at, 'month', at FROM generate_series(1, %d) AS"
             " u, (SELECT now() - interval '5 days') AS t (at)",
             n);
}

void cards_orders(int n, int qty, int there)
{
    world_do(INTO_STOCK "VALUES (1, 'A', %d, %d, 100, 'USD')", there, there);
    world_do("SELECT place_order(u, 'k', '[{\"sku\": \"A\", \"qty\": %d}]', now()) FROM"
             " generate_series(1, %d) AS u",
             qty, n);
}

#define DECIDED                                                                        \
    "SELECT NOT EXISTS (SELECT FROM ledgerlock.payments WHERE state IN ('planned',"    \
    " 'sent', 'unknown')) AND NOT EXISTS (SELECT FROM ledgerlock.subscriptions WHERE"  \
    " state = 'paying' OR (state IN ('active', 'past_due') AND next_due_at <= now()))" \
    " AND NOT EXISTS (SELECT FROM ledgerlock.orders WHERE state IN ('pending',"        \
    " 'paying'))"

void cards_decided(void)
{
    world_wait(DECIDED);
}

void cards_hurry(void)
{
    super_do("UPDATE ledgerlock.payments SET due_at = now() WHERE payment_id IN (SELECT"
             " payment_id FROM ledgerlock.payments WHERE state = 'unknown' AND due_at >"
             " now() FOR UPDATE SKIP LOCKED)");
}

void cards_decided_soon(void)
{
    FIXTURE_AWAIT((cards_hurry(), super_ask(DECIDED) != 0), "not decided: %s",
                  world_show_log(&world.pool));
}

void cards_agree(long captures, long refunds)
{
    promise_int_equal(gateway_captures(), captures);
    gateway_get("/_/witness");
    gateway_shows("\"duplicates\":{}");
    promise_int_equal(gateway_number("/_/witness", "refunds"), refunds);
    promise_int_equal(world_ask("SELECT count(*) FROM payments WHERE state = 'captured'"
                                " AND kind <> 'refund'"),
                      captures);
    promise_int_equal(world_ask("SELECT count(*) FROM payments WHERE state = 'captured'"
                                " AND kind = 'refund'"),
                      refunds);
    if (captures > 0)
        promise_int_equal(
            gateway_number("/_/witness", "usd"),
            world_ask("SELECT sum(amount_minor)::bigint FROM ledger WHERE debit ="
                      " 'gateway'"));
    world_runs(0, "audit");
}
