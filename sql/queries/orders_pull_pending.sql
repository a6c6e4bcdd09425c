-- Pending orders of one bucket, oldest first, with every key they need: a hint what to lock.
-- $1 bigint: bucket. $2 timestamptz: now (null: the database's clock). $3 bigint: limit.
-- At most 16385 rows, so that memory stays bounded whatever the orders hold; a cut order is pulled next time.
-- One row of arrays, in parallel: order_ids, resource kinds (0 user, 1 sku), ids, deaths the order is charged with
-- (-1: no suspect; told with its first key, the user; null: there are none); keys of one order stand together, its
-- user first. All null: nothing is due. Locks: none.
WITH head AS MATERIALIZED (
  SELECT order_id, user_id
    FROM ledgerlock.orders
   WHERE bucket BETWEEN $1::bigint::smallint AND $1::bigint::smallint -- see orders_due_buckets
     AND state = 'pending' AND placed_at <= coalesce($2::timestamptz, now())
   ORDER BY bucket, order_id
   LIMIT $3::bigint
), pulled AS (
  SELECT order_id, 0::bigint AS kind, user_id AS id,
         CASE WHEN EXISTS (SELECT FROM ledgerlock.quarantine)
              THEN (SELECT crashes FROM ledgerlock.quarantine WHERE job = 'orders' AND item = order_id) END AS crashes
    FROM head
  UNION ALL
  SELECT DISTINCT order_id, 1::bigint, sku_id, NULL::integer FROM head JOIN ledgerlock.order_lines USING (order_id)
   ORDER BY 1, 2, 3
   LIMIT 16385
)
SELECT array_agg(order_id), array_agg(kind), array_agg(id),
       array_agg(coalesce(crashes, -1)::bigint) FILTER (WHERE EXISTS (SELECT FROM ledgerlock.quarantine))
  FROM pulled
