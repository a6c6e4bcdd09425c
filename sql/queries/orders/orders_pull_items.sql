-- The orders of a list that are still pending, in the form of orders_pull_pending.
-- $1 bigint[]: order ids. $2 timestamptz: now (null: the database's clock).
-- The row has arrays, in parallel: order_ids, resource kinds (0 user, 1 SKU), ids, places (null). Arrays null: none is
-- due, or the job is paused. Locks: none.
WITH head AS MATERIALIZED (
  SELECT o.order_id, o.user_id, asked.nth
    FROM unnest($1::bigint[]) WITH ORDINALITY AS asked (id, nth)
   CROSS JOIN LATERAL (SELECT * FROM orders
                        WHERE order_id = asked.id
                       OFFSET 0) AS o -- OFFSET 0: one index scan for each, also with wrong statistics
   WHERE o.state = 'pending' AND o.placed_at <= coalesce($2::timestamptz, now())
     AND NOT EXISTS (SELECT FROM paused_jobs WHERE job = 'orders')
), pulled AS (
  SELECT nth, order_id, 0::bigint AS kind, user_id AS id FROM head
  UNION ALL
  SELECT DISTINCT nth, order_id, 1::bigint, sku_id
    FROM head
   CROSS JOIN LATERAL (SELECT sku_id FROM order_lines
                        WHERE order_id = head.order_id
                       OFFSET 0) AS l -- OFFSET 0: by key for each order, also without the planner settings of a worker's session
   ORDER BY 1, 3, 4
   LIMIT 16385
)
SELECT array_agg(order_id), array_agg(kind), array_agg(id), NULL::tid[], NULL::timestamptz[]
  FROM pulled
