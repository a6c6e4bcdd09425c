/* forged_rows: a shop in all its states, for tests that write it wrongly. */
#ifndef LEDGERLOCK_FORGED_ROWS_H
#define LEDGERLOCK_FORGED_ROWS_H

/* User 1 has 6.50, user 2 nothing, user 3 10.00. Subscription 1 is paid for its first
 * month, 2 is declined, 3 cancelled, 5 unpaid; 4 and 6 of user 1 and 7 of user 2 are
 * due. Order 1 is fulfilled, 2 rejected, 3 pending, and 4 is of tomorrow. */
static const char forged_rows[] =
    "SET search_path = ledgerlock;"
    "INSERT INTO users (user_id, balance_minor, currency, fence) VALUES (1, 650, 'USD', 5), (2, 0, 'USD', 5), (3, 1000, 'USD', 5);"
    "INSERT INTO stock (sku_id, sku, initial_qty, on_hand, unit_price_minor, currency, fence) VALUES (1, 'A', 10, 9, 250, 'USD', 5);"
    "INSERT INTO subscriptions (subscription_id, user_id, plan, amount_minor, currency, anchor_at, unit, state,"
    " next_period_no, next_due_at, cancel_at, retries)"
    " SELECT id, u, 'p' || id, 100, 'USD', a, 'month', state, no, due, CASE state WHEN 'cancelled' THEN a END, tries"
    " FROM (SELECT now() - interval '3 days') AS t (a), LATERAL (VALUES"
    " (1, 1, 'active', 1, period_start(a, 'month', 1, 1), 0), (2, 2, 'past_due', 0, now() + interval '1 day', 1),"
    " (3, 1, 'cancelled', 0, a, 0), (4, 1, 'active', 0, a, 0), (5, 2, 'unpaid', 0, a, 4), (6, 1, 'active', 0, a, 0),"
    " (7, 2, 'past_due', 0, now(), 1)) AS v (id, u, state, no, due, tries);"
    "SELECT make_months(now() - interval '3 days', now() + interval '32 days');"
    "INSERT INTO charges SELECT subscription_id, 0, user_id, anchor_at, period_start(anchor_at, unit, every, 1), 100,"
    " CASE subscription_id WHEN 1 THEN 'captured' ELSE 'declined' END, 1, 5, 'w', now()"
    " FROM subscriptions WHERE subscription_id IN (1, 2, 5, 7);"
    "INSERT INTO orders (order_id, user_id, idempotency_key, request_hash, state, reason, total_minor, currency,"
    " placed_at, decided_at, fence) SELECT id, 1, id, '', state, reason, 250, 'USD', now() + later, CASE WHEN fence > 0 THEN now() END, fence"
    " FROM (VALUES (1, 'fulfilled', NULL, 5, interval '0'), (2, 'rejected', 'insufficient_funds', 5, '0'), (3, 'pending', NULL, 0, '0'),"
    " (4, 'pending', NULL, 0, '1 day')) AS v (id, state, reason, fence, later);"
    "SELECT setval('orders_order_id_seq', 100);"
    "INSERT INTO order_lines SELECT order_id, 1, 250, 1 FROM orders;"
    "INSERT INTO wallet_entries (user_id, kind, idempotency_key, amount_minor, at) VALUES (1, 'deposit', '', 1000, now());"
    "UPDATE lock_token SET last = 5;"
    "SELECT setval(pg_get_serial_sequence('orders', 'order_id'), 100)";

/* Damage that only a guard that failed would let in; the key or CHECK that forbids a
 * row is dropped first. */
#define FORGED_BY_HAND "SET ledgerlock.repair = on; SET search_path = ledgerlock; "
#define FORGED_CHARGE                                                                  \
    "ALTER TABLE charges DROP CONSTRAINT one_charge_per_period; "                      \
    "INSERT INTO charges SELECT * FROM charges WHERE subscription_id = 1; "
#define FORGED_UNIT                                                                    \
    "ALTER TABLE stock DROP CONSTRAINT on_hand_never_negative; "                       \
    "INSERT INTO orders (order_id, user_id, idempotency_key, request_hash, state, "    \
    "total_minor, currency, placed_at, decided_at, fence) VALUES (99, 1, '99', '', "   \
    "'fulfilled', 0, 'USD', now(), now(), 5); INSERT INTO order_lines SELECT 99, "     \
    "sku_id, 0, on_hand + 1 FROM stock; UPDATE stock SET on_hand = -1; "
#define FORGED_WALLET                                                                  \
    "UPDATE users SET balance_minor = balance_minor + 1 WHERE user_id = 1; "

#endif
