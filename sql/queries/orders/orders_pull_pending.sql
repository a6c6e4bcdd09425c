-- Pending orders with every key that they need, those that were placed first. The rows are read without a lock, so they
-- only tell which keys to lock; orders_apply_orders reads them again under the claim. At most 16385 keys, so that the
-- memory of a worker stays bounded; an order that is cut off is pulled next time.
-- $1 bigint: so many of the oldest are passed over, which other workers serve. $2 timestamptz: now (null: the database's
-- clock). $3 bigint: limit. $4 timestamptz and $5 bigint: only orders behind the one that was placed then and has this id
-- are read.
-- The row has arrays, in parallel: order_ids, resource kinds (0 user, 1 SKU), ids, places (null), times of placing; keys
-- of one order stand together, its user first. Then null, and true if the job is paused. Arrays null: nothing is due, or
-- the job is paused. Locks: none.
WITH job AS MATERIALIZED (
  SELECT EXISTS (SELECT FROM paused_jobs WHERE job = 'orders') AS is_paused
), head AS MATERIALIZED (
  SELECT order_id, user_id, placed_at, row_number() OVER () AS nth
    FROM (SELECT o.order_id, o.user_id, o.placed_at FROM orders AS o
           WHERE o.state = 'pending' AND o.placed_at <= (SELECT coalesce($2::timestamptz, now()))
             AND (o.placed_at, o.order_id) > ((SELECT $4::timestamptz), (SELECT $5::bigint))
             AND NOT (SELECT is_paused FROM job)
           ORDER BY o.placed_at, o.order_id OFFSET (SELECT $1::bigint) LIMIT (SELECT $3::bigint)) AS oldest
), pulled AS (
  SELECT nth, order_id, 0::bigint AS kind, user_id AS id, placed_at FROM head
  UNION ALL
  SELECT DISTINCT nth, order_id, 1::bigint, sku_id, placed_at
    FROM head
   CROSS JOIN LATERAL (SELECT sku_id FROM order_lines
                        WHERE order_id = head.order_id
                       OFFSET 0) AS l -- OFFSET 0: by key for each order, also without the planner settings of a worker's session
   ORDER BY 1, 3, 4
   LIMIT 16385
)
SELECT array_agg(order_id), array_agg(kind), array_agg(id), NULL::tid[],
       array_agg(placed_at), NULL::bigint, (SELECT is_paused FROM job)
  FROM pulled
