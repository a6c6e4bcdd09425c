-- The SKUs of a season, on both sides; those that are there stay. $1 bigint: how many. Columns: none. Locks: the rows.
WITH made AS (
  INSERT INTO stock (sku, initial_qty, on_hand, unit_price_minor, currency)
  SELECT 'shop-' || g, 40, 40, 100 + 10 * g, 'USD' FROM generate_series(1, $1::bigint) AS g
  ON CONFLICT (sku) DO NOTHING RETURNING sku_id, on_hand
)
INSERT INTO ledgerlock_plain.stock (sku_id, on_hand, received, oversold) SELECT sku_id, on_hand, on_hand, 0 FROM made
