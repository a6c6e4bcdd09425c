-- The names of the locks that a due row needs, as they are in Redis. $1 bigint: subscription, or null. $2 bigint: order, or null.
-- Column: name. No row: it is not due, so it needs none. Locks: none.
SELECT 'user:' || user_id FROM subscriptions
 WHERE subscription_id = $1::bigint AND state IN ('active', 'past_due') AND next_due_at <= now()
UNION
SELECT 'user:' || user_id FROM orders WHERE order_id = $2::bigint AND state = 'pending' AND placed_at <= now()
UNION
SELECT 'sku:' || l.sku_id
  FROM orders AS o
  JOIN order_lines AS l USING (order_id)
 WHERE o.order_id = $2::bigint AND o.state = 'pending' AND o.placed_at <= now()
