/* card_orders: orders that are paid by card, and money that goes back to one, at the
 * stand-in of a gateway (labs/gateway). The rules are told in
 * tests/sql/orders_by_card.sql. */
#include "tests/lib/cards.h"

CARDS_GROUP();

/* Guarantee: Buyers by card get exactly the units that are there, and nobody is charged
 * for a unit that is not. */
CASE(buyers_by_card_get_what_is_there)
{
    cards_users(300, 300);
    cards_orders(300, 1, 100);
    world_says(0, "100 captured", "run --once --orders 2 --payments 2");
    world_is(100, "SELECT count(*) FROM orders WHERE state = 'fulfilled'");
    world_is(200, "SELECT count(*) FROM orders WHERE reason = 'out_of_stock'");
    world_is(0, "SELECT on_hand + held FROM stock");
    cards_agree(100, 0);
}

/* Guarantee: Wallets and cards buy in one run, and what a declined card held is sold to
 * others. */
CASE(units_of_a_declined_card_are_sold_to_others)
{
    cards_users(3, 2);
    world_do("SELECT pay_with(1, 'card', 'cus_declines_hard', 'pm_1')");
    cards_orders(3, 3, 6);
    world_says(0, "1 card_declined", "run --once");
    world_is(1, "SELECT count(*) FROM orders WHERE reason = 'card_declined'");
    world_do("SELECT place_order(3, 'again', '[{\"sku\": \"A\", \"qty\": 1}]', now())");
    world_runs(0, "run --once");
    world_is(1,
             "SELECT count(*) FROM orders WHERE state = 'fulfilled' AND NOT by_card");
    cards_agree(1, 0);
}

/* Guarantee: Each order is captured once and its units are sold once, whatever the
 * gateway answers or does not, while periods are captured beside it. */
CASE_ROWS(each_order_is_captured_once_by_a_gateway_that, cards_faults, .every = 7)
{
    fixture_env("LEDGERLOCK_GATEWAY_TIMEOUT_MS", "1000");
    gateway_behaves(row->faults);
    cards_users(20, 20);
    cards_periods(20);
    cards_orders(20, 2, 40);
    pool_start("run --payments 2");
    cards_decided();
    cards_agree(40, 0);
    world_is(0, "SELECT on_hand + held FROM stock");
    world_is(20, "SELECT count(*) FROM charges WHERE state = 'paid'");
}

/* Guarantee: An answer for an order whose stock another session has locked is settled
 * later, and keeps no other waiting. */
CASE(locked_stock_keeps_no_other_answer_waiting)
{
    PGconn *other;

    cards_users(10, 10);
    cards_orders(5, 1, 5);
    cards_periods(10);
    world_do("SELECT pause_job('payments')");
    pool_start("run --payments 1");
    world_wait("SELECT count(*) = 15 FROM ledgerlock.payments WHERE state = 'planned'");
    other = super_open();
    PQclear(PQexec(other, "BEGIN; SELECT FROM stock FOR UPDATE"));
    world_do("SELECT resume_job('payments')");
    world_wait("SELECT count(*) = 10 FROM ledgerlock.charges WHERE state = 'paid'");
    world_is(5, "SELECT count(*) FROM orders WHERE state = 'paying'");
    PQfinish(other);
    cards_decided();
    cards_agree(15, 0);
}

/* Guarantee: Workers that are killed while orders are paid by card sell every unit
 * once. */
CASE(killed_workers_sell_once)
{
    fixture_env("LEDGERLOCK_GATEWAY_TIMEOUT_MS", "20000");
    gateway_behaves("latency_ms=10000");
    cards_users(60, 60);
    cards_orders(60, 1, 40);
    pool_start("run --payments 1");
    for (int kills = 1; kills <= 2; kills++) {
        pid_t pid;

        world_wait("SELECT count(*) = 40 FROM ledgerlock.payments WHERE state = 'sent'"
                   " AND calls = %d",
                   kills);
        pid = pool_child(world.pool.pid, "payments:0");
        assert_int_not_equal(pid, 0);
        (void)kill(pid, SIGKILL);
    }
    gateway_behaves("latency_ms=0");
    cards_decided();
    cards_agree(40, 0);
    world_is(0, "SELECT on_hand + held FROM stock");
}

/* Guarantee: Money that a card has paid is given back to the card once, whatever the
 * gateway answers or does not. */
CASE_ROWS(refund_is_made_once_by_a_gateway_that, cards_faults, .every = 7)
{
    cards_users(5, 5);
    cards_periods(5);
    cards_orders(5, 2, 10);
    world_runs(0, "run --once");
    gateway_behaves(row->faults);
    fixture_env("LEDGERLOCK_GATEWAY_TIMEOUT_MS", "1000");
    world_do("SELECT refund(u, 'charge', subscription_id, 0, 30, 'late', 'k'),"
             " return_units(u, order_id, 'A', 1, 'broken', 'k') FROM"
             " generate_series(1, 5) AS u JOIN orders ON user_id = u JOIN"
             " subscriptions USING (user_id)");
    world_says(0, "10 refunded", "run --once");
    gateway_behaves("drop_after=0");
    world_is(5, "SELECT on_hand FROM stock");
    cards_agree(10, 10);
    promise_int_equal(world_ask("SELECT sum(amount_minor)::bigint FROM ledger WHERE"
                                " credit = 'gateway'"),
                      5 * 30 + 5 * 100);
}
