-- The last order and the last subscription by now. Columns: order_id, subscription_id (0: none). Locks: none.
SELECT coalesce((SELECT max(order_id) FROM orders), 0)::bigint, coalesce((SELECT max(subscription_id) FROM subscriptions), 0)::bigint
