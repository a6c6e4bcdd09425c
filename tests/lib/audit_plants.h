/* audit_plants: violations for the world of audit_world.h, each of which breaks one
 * invariant and no other. Every file of sql/audit needs at least one: a test asks. The
 * search_path is ledgerlock and the tables have no constraints. */
#ifndef LEDGERLOCK_AUDIT_PLANTS_H
#define LEDGERLOCK_AUDIT_PLANTS_H

/* clang-format off */
static const struct plant {
    const char *invariant;
    const char *sql;
} plants[] = {
    {"one_charge_per_period", "INSERT INTO charges SELECT * FROM charges WHERE (subscription_id, period_no) = (1, 0)"},
    {"periods_contiguous", "DELETE FROM charges WHERE (subscription_id, period_no) = (1, 1);"
        "DELETE FROM transfers WHERE (kind, source, leg) = ('charge', 1, 1);"
        "UPDATE users SET balance_minor = balance_minor + 1000 WHERE user_id = 1"},
    {"next_period_right", "UPDATE subscriptions SET next_period_no = 4, next_due_at = '2024-05-31 00:00Z' WHERE subscription_id = 1"},
    {"next_period_right", "UPDATE subscriptions SET next_period_no = 1, next_due_at = '2024-06-30 00:00Z' WHERE subscription_id = 7"},
    {"next_due_right", "UPDATE subscriptions SET next_due_at = next_due_at + interval '1 hour' WHERE subscription_id = 1"},
    {"next_due_right", "UPDATE subscriptions SET next_due_at = '2034-01-01' WHERE subscription_id = 4"},
    {"boundaries_from_anchor", "UPDATE charges SET period_end = period_end + interval '1 day' WHERE (subscription_id, period_no) = (1, 1)"},
    {"boundaries_from_anchor", "UPDATE charges SET period_start = period_start - interval '1 day' WHERE (subscription_id, period_no) = (1, 1)"},
    {"charge_matches_subscription", "UPDATE subscriptions SET amount_minor = 1001 WHERE subscription_id = 1"},
    {"charge_matches_subscription", "DELETE FROM subscriptions WHERE subscription_id = 4"},
    {"declined_is_the_open_period", "DELETE FROM charges WHERE (subscription_id, period_no) = (3, 1)"},
    {"declined_is_the_open_period", "INSERT INTO charges SELECT 4, 2, 3, '2024-04-11 00:00Z', '2024-04-21 00:00Z', 300, 'declined', 1, 0, '', '2024-04-12'"},
    {"declined_is_the_open_period", "INSERT INTO charges SELECT 2, 3, 1, '2024-04-12 00:00Z', '2024-04-26 00:00Z', 200, 'declined', 1, 0, '', '2024-04-13'"},
    {"nothing_charged_early", "UPDATE charges SET charged_at = period_start - interval '1 second' WHERE (subscription_id, period_no) = (1, 0)"},
    {"nothing_charged_after_cancel", "UPDATE subscriptions SET cancel_at = '2024-03-15 00:00Z' WHERE subscription_id = 2"},
    {"cancelled_when_over", "UPDATE subscriptions SET cancel_at = '2024-03-29 00:00:01Z' WHERE subscription_id = 2"},
    {"cancelled_when_over", "UPDATE subscriptions SET cancel_at = NULL WHERE subscription_id = 2"},
    {"charge_has_its_transfer", "DELETE FROM transfers WHERE (kind, source, leg) = ('charge', 1, 2);"
        "UPDATE users SET balance_minor = balance_minor + 1000 WHERE user_id = 1"},
    {"charge_has_its_transfer", "UPDATE transfers SET amount_minor = 999 WHERE (kind, source, leg) = ('charge', 1, 2);"
        "UPDATE users SET balance_minor = balance_minor + 1 WHERE user_id = 1"},
    {"charge_has_its_transfer", "UPDATE transfers SET user_id = 2 WHERE (kind, source, leg) = ('charge', 2, 1);"
        "UPDATE users SET balance_minor = balance_minor + 200 WHERE user_id = 1;"
        "UPDATE users SET balance_minor = balance_minor - 200 WHERE user_id = 2"},
    {"only_captured_charges_are_paid", "INSERT INTO transfers (kind, source, leg, user_id, debit, credit, amount_minor, currency, moved_at)"
        " VALUES ('charge', 6, 0, 2, 'wallet', 'subscription_revenue', 100, 'USD', now());"
        "UPDATE users SET balance_minor = balance_minor - 100 WHERE user_id = 2"},
    {"only_captured_charges_are_paid", "INSERT INTO transfers (kind, source, leg, user_id, debit, credit, amount_minor, currency, moved_at)"
        " VALUES ('charge', 7, 0, 2, 'wallet', 'subscription_revenue', 100, 'USD', now());"
        "UPDATE users SET balance_minor = balance_minor - 100 WHERE user_id = 2"},
    {"one_transfer_per_source", "INSERT INTO transfers (kind, source, leg, user_id, debit, credit, amount_minor, currency, moved_at)"
        " SELECT kind, source, leg, user_id, debit, credit, amount_minor, currency, moved_at FROM transfers WHERE (kind, source) = ('charge', 2);"
        "UPDATE users SET balance_minor = balance_minor - 400 WHERE user_id = 1"},
    {"balance_is_sum_of_transfers", "UPDATE users SET balance_minor = balance_minor + 1 WHERE user_id = 1"},
    {"balance_is_sum_of_transfers", "INSERT INTO transfers (kind, source, leg, user_id, debit, credit, amount_minor, currency, moved_at)"
        " VALUES ('deposit', 99, 1, 99, 'cash', 'wallet', 100, 'USD', now())"},
    {"balance_is_sum_of_transfers", "INSERT INTO transfers (kind, source, leg, user_id, debit, credit, amount_minor, currency, moved_at)"
        " VALUES ('deposit', 1, 9, 1, 'cash', 'wallet', 3000000000, 'USD', now())"},
    {"balance_never_negative", "UPDATE transfers SET amount_minor = 999 WHERE (kind, source) = ('deposit', 2);"
        "UPDATE users SET balance_minor = -1 WHERE user_id = 2"},
    {"transfers_net_to_zero", "UPDATE transfers SET debit = 'mattress' WHERE (kind, source, leg) = ('deposit', 1, 1)"},
    {"wallet_keeps_its_currency", "UPDATE transfers SET currency = 'EUR' WHERE (kind, source) = ('deposit', 2)"},
    {"wallet_keeps_its_currency", "UPDATE transfers SET currency = 'USD' WHERE (kind, source) = ('deposit', 3)"},
    {"on_hand_is_initial_plus_movements", "UPDATE stock SET on_hand = on_hand + 1 WHERE sku_id = 1"},
    {"on_hand_is_initial_plus_movements", "INSERT INTO stock_movements (sku_id, kind, source, qty, fence, moved_at) VALUES (99, 'receive', 1, 5, 0, now())"},
    {"on_hand_never_negative", "UPDATE stock SET initial_qty = 0, on_hand = -1 WHERE sku_id = 2"},
    {"one_movement_per_source", "INSERT INTO stock_movements (sku_id, kind, source, qty, fence, moved_at)"
        " SELECT sku_id, kind, source, qty, fence, moved_at FROM stock_movements WHERE (sku_id, source, kind) = (1, 1, 'sale');"
        "UPDATE stock SET on_hand = on_hand - 2 WHERE sku_id = 1"},
    {"movement_has_sign_of_kind", "UPDATE stock_movements SET qty = -5 WHERE kind = 'receive'; UPDATE stock SET on_hand = on_hand - 10 WHERE sku_id = 1"},
    {"fulfilled_order_has_its_movements", "UPDATE stock_movements SET qty = -1 WHERE (sku_id, source, kind) = (1, 1, 'sale');"
        "UPDATE stock SET on_hand = on_hand + 1 WHERE sku_id = 1"},
    {"fulfilled_order_has_its_movements", "DELETE FROM stock_movements WHERE sku_id = 4; UPDATE stock SET on_hand = on_hand + 1 WHERE sku_id = 4"},
    {"fulfilled_order_has_its_movements", "UPDATE order_lines SET qty = 3000000000 WHERE order_id = 7"},
    {"fulfilled_order_has_its_movements", "INSERT INTO order_lines (order_id, sku_id, qty, unit_price_minor) VALUES (7, 4, 3000000000, 0)"},
    {"only_fulfilled_orders_move_stock", "INSERT INTO stock_movements (sku_id, kind, source, qty, fence, moved_at) VALUES (2, 'sale', 2, -1, 0, now());"
        "UPDATE stock SET on_hand = on_hand - 1 WHERE sku_id = 2"},
    {"only_fulfilled_orders_move_stock", "INSERT INTO stock_movements (sku_id, kind, source, qty, fence, moved_at) VALUES (1, 'sale', 6, -1, 0, now());"
        "UPDATE stock SET on_hand = on_hand - 1 WHERE sku_id = 1"},
    {"only_fulfilled_orders_move_stock", "INSERT INTO stock_movements (sku_id, kind, source, qty, fence, moved_at) VALUES (3, 'sale', 1, -1, 0, now());"
        "UPDATE stock SET on_hand = on_hand - 1 WHERE sku_id = 3"},
    {"only_fulfilled_orders_move_stock", "INSERT INTO stock_movements (sku_id, kind, source, qty, fence, moved_at) VALUES (1, 'sale', 99, -1, 0, now());"
        "UPDATE stock SET on_hand = on_hand - 1 WHERE sku_id = 1"},
    {"fulfilled_order_has_its_payment", "DELETE FROM transfers WHERE (kind, source) = ('payment', 1);"
        "UPDATE users SET balance_minor = balance_minor + 900 WHERE user_id = 1"},
    {"fulfilled_order_has_its_payment", "UPDATE transfers SET amount_minor = 391 WHERE (kind, source) = ('payment', 5);"
        "UPDATE users SET balance_minor = balance_minor - 1 WHERE user_id = 3"},
    {"only_fulfilled_orders_are_paid", "INSERT INTO transfers (kind, source, leg, user_id, debit, credit, amount_minor, currency, moved_at)"
        " VALUES ('payment', 2, 0, 1, 'wallet', 'order_revenue', 10, 'USD', now());"
        "UPDATE users SET balance_minor = balance_minor - 10 WHERE user_id = 1"},
    {"order_total_is_its_lines", "UPDATE orders SET total_minor = 2001 WHERE order_id = 2"},
    {"order_total_is_its_lines", "DELETE FROM order_lines WHERE order_id = 3"},
    {"rejected_order_has_reason", "UPDATE orders SET reason = NULL WHERE order_id = 3"},
    {"rejected_order_has_reason", "UPDATE orders SET skus = NULL WHERE order_id = 2"},
    {"rejected_order_has_reason", "UPDATE orders SET reason = 'insufficient_funds' WHERE order_id = 6"},
    {"one_order_per_key", "UPDATE orders SET idempotency_key = 'k2' WHERE order_id = 4"},
    {"user_fence_covers_effects", "UPDATE users SET fence = fence - 1 WHERE user_id = 1"},
    {"user_fence_covers_effects", "UPDATE charges SET fence = 1099511627785 WHERE subscription_id = 5"},
    {"stock_fence_covers_effects", "UPDATE stock SET fence = fence - 1 WHERE sku_id = 1"},
    {"no_fence_above_epoch", "UPDATE users SET fence = 2 * 1099511627776 WHERE user_id = 3"},
    {"no_fence_above_epoch", "UPDATE stock SET fence = 2 * 1099511627776 WHERE sku_id = 3"},
    {"nothing_due_left", "UPDATE orders SET placed_at = '2024-04-09 22:59Z' WHERE order_id = 6"},
    {"nothing_due_left", "UPDATE subscriptions SET anchor_at = '2024-04-09 22:59Z', next_due_at = '2024-04-09 22:59Z' WHERE subscription_id = 7"},
    {"nothing_due_left", "UPDATE subscriptions SET next_due_at = '2024-04-01' WHERE subscription_id = 3"},
    {"nothing_parked", "UPDATE subscriptions SET state = 'parked' WHERE subscription_id = 5"},
    {"one_subscription_per_contract", "INSERT INTO subscriptions (subscription_id, user_id, plan, amount_minor, currency, anchor_at, unit, next_due_at)"
        " SELECT 8, user_id, plan, amount_minor, currency, anchor_at, unit, next_due_at FROM subscriptions WHERE subscription_id = 7"},
    {"subscription_has_its_wallet", "UPDATE subscriptions SET currency = 'EUR' WHERE subscription_id = 7"},
    {"subscription_has_its_wallet", "UPDATE subscriptions SET user_id = 99 WHERE subscription_id = 7"},
    {"order_has_its_wallet", "UPDATE orders SET currency = 'EUR' WHERE order_id = 6"},
    {"order_has_its_wallet", "UPDATE orders SET user_id = 99 WHERE order_id = 6"},
    {"line_has_its_sku", "UPDATE order_lines SET sku_id = 99 WHERE order_id = 6"},
    {"nothing_parked", "UPDATE orders SET state = 'parked' WHERE order_id = 6"},
};

/* clang-format on */

#endif
