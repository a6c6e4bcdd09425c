-- Takes out lines of months that are closed: subscriptions that would be due there, and all lines of orders that were
-- placed there. Rows that are there already stay. Locks: none. Serves: a closed month takes no rows.
WITH due AS (
  DELETE FROM pg_temp.import_subscriptions AS i
   WHERE i.anchor_at < (SELECT first_open())
     AND NOT EXISTS (SELECT FROM subscriptions AS s JOIN users AS u USING (user_id)
                      WHERE u.external_ref = i.customer_ref AND (s.plan, s.anchor_at) = (i.plan, i.anchor_at))
  RETURNING i.line, 'anchor_at lies in a month that is closed' AS reason, i.raw
), placed AS (
  SELECT order_ref, customer_ref FROM pg_temp.import_orders
   GROUP BY order_ref, customer_ref
  HAVING min(placed_at) < (SELECT first_open())
), ordered AS (
  DELETE FROM pg_temp.import_orders AS i USING placed AS p
   WHERE (i.order_ref, i.customer_ref) = (p.order_ref, p.customer_ref)
     AND NOT EXISTS (SELECT FROM orders AS o JOIN users AS u USING (user_id)
                      WHERE u.external_ref = i.customer_ref AND o.idempotency_key = i.order_ref)
  RETURNING i.line, 'placed_at lies in a month that is closed' AS reason, i.raw
)
INSERT INTO pg_temp.import_bad (kind, line, reason, raw)
SELECT 'subscriptions', line, reason, raw FROM due
UNION ALL
SELECT 'orders', line, reason, raw FROM ordered
