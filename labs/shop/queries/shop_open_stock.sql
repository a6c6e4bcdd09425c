-- The SKUs of a season, on both sides; those that are there stay. $1 bigint: how many. $2 bigint: orders a second. A delivery, and
-- the initial stock, are what is asked for in 15 seconds (shop_place_orders). Columns: none. Locks: the rows.
WITH made AS (
  INSERT INTO stock (sku, initial_qty, on_hand, unit_price_minor, currency)
  SELECT 'shop-' || g, portion, portion, 100 + 10 * g, 'USD'
    FROM generate_series(1, $1::bigint) AS g,
         ceil(1 + 15 * $2::bigint * (power(g, 2 / 3.0) - power(g - 1, 2 / 3.0)) / power($1::bigint, 2 / 3.0)) AS portion
  ON CONFLICT (sku) DO NOTHING RETURNING sku_id, on_hand
)
INSERT INTO ledgerlock_plain.stock (sku_id, on_hand, received, oversold, portion) SELECT sku_id, on_hand, on_hand, 0, on_hand FROM made
