-- A delivery, the same for both sides, of each SKU that the unguarded side sold out six seconds ago: so everything runs out again and
-- again, and a unit that is on the shelf by a lost update alone is sold. (A worker that is frozen meanwhile has woken by then, and finds no delivery to
-- overwrite.) The unguarded side takes stock before: units sold above those received are noted for ever.
-- $1 bigint: a delivery number that was never given. Columns: none. Locks: the rows.
WITH came AS (
  UPDATE ledgerlock_plain.stock AS s
     SET oversold = s.oversold + greatest(n.sold - s.received, 0), received = greatest(n.sold, s.received) + s.portion,
         on_hand = s.on_hand + s.portion, out_at = NULL
    FROM (SELECT sku_id, sum(qty)::bigint AS sold FROM ledgerlock_plain.charges WHERE kind = 'order' GROUP BY sku_id) AS n
   WHERE n.sku_id = s.sku_id AND s.out_at < clock_timestamp() - interval '6 seconds'
  RETURNING s.sku_id, s.portion
)
SELECT receive_stock(sku, $1::bigint, portion) FROM came JOIN stock USING (sku_id) ORDER BY sku_id
