-- Takes out lines that the client functions would refuse: of closed accounts; of months that are closed, which are subscriptions that would
-- be due there and all lines of orders that were placed there; and of times far from now, which exports write where there is none.
-- Rows that are there already stay. Locks: none. Serves: a closed month and a closed account take no rows.
WITH closed AS (
  SELECT external_ref FROM users WHERE closed_at IS NOT NULL
), due AS (
  DELETE FROM pg_temp.import_subscriptions AS i
   WHERE (i.anchor_at < (SELECT first_open()) OR i.anchor_at NOT BETWEEN now() - interval '50 years' AND now() + interval '1 year'
          OR i.customer_ref IN (SELECT external_ref FROM closed))
     AND NOT EXISTS (SELECT FROM subscriptions AS s JOIN users AS u USING (user_id)
                      WHERE u.external_ref = i.customer_ref AND (s.plan, s.anchor_at) = (i.plan, i.anchor_at))
  RETURNING i.line, CASE WHEN i.customer_ref IN (SELECT external_ref FROM closed) THEN format('the account of customer "%s" is closed', i.customer_ref)
                         WHEN i.anchor_at BETWEEN now() - interval '50 years' AND now() + interval '1 year'
                         THEN 'anchor_at lies in a month that is closed'
                         ELSE 'anchor_at lies more than 50 years back, or more than a year ahead' END AS reason, i.raw
), placed AS (
  SELECT order_ref, customer_ref, min(placed_at) AS first, max(placed_at) AS last FROM pg_temp.import_orders
   GROUP BY order_ref, customer_ref
  HAVING min(placed_at) < (SELECT first_open()) OR min(placed_at) < now() - interval '50 years' OR max(placed_at) > now() + interval '1 year'
      OR customer_ref IN (SELECT external_ref FROM closed)
), ordered AS (
  DELETE FROM pg_temp.import_orders AS i USING placed AS p
   WHERE (i.order_ref, i.customer_ref) = (p.order_ref, p.customer_ref)
     AND NOT EXISTS (SELECT FROM orders AS o JOIN users AS u USING (user_id)
                      WHERE u.external_ref = i.customer_ref AND o.idempotency_key = i.order_ref)
  RETURNING i.line, CASE WHEN i.customer_ref IN (SELECT external_ref FROM closed) THEN format('the account of customer "%s" is closed', i.customer_ref)
                         WHEN p.first >= now() - interval '50 years' AND p.last <= now() + interval '1 year'
                         THEN 'placed_at lies in a month that is closed'
                         ELSE 'placed_at lies more than 50 years back, or more than a year ahead' END AS reason, i.raw
)
INSERT INTO pg_temp.import_bad (kind, line, reason, raw)
SELECT 'subscriptions', line, reason, raw FROM due
UNION ALL
SELECT 'orders', line, reason, raw FROM ordered
