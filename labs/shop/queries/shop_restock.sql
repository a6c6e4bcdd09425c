-- A delivery, the same for both sides, of each SKU that the unguarded side sold out six seconds ago: so everything runs out again and
-- again, and a unit that is on the shelf by a lost update alone is sold. (A worker that is frozen meanwhile has woken by then, and finds no delivery to
-- overwrite.) The unguarded side takes stock before: units sold above those received are noted for ever.
-- $1 bigint: the key of a delivery, which was never given. Columns: none. Locks: the rows.
WITH came AS (
  UPDATE ledgerlock_plain.stock
     SET oversold = oversold + greatest(sold - received, 0), received = greatest(sold, received) + portion,
         on_hand = on_hand + portion, out_at = NULL
   WHERE out_at < clock_timestamp() - interval '6 seconds'
  RETURNING sku_id, portion
)
SELECT receive_stock(sku, $1::bigint::text, portion) FROM came JOIN stock USING (sku_id) ORDER BY sku_id
