-- Makes every SKU that is asked for, with so many percent of what all orders want of it.
-- $1 bigint: percent. $2 bigint: 0, in the order of their ids; 1, in no order. Columns: none. Locks: the new rows.
INSERT INTO stock (sku_id, sku, initial_qty, on_hand, unit_price_minor, currency)
SELECT sku_id, 'bench-' || sku_id, units, units, unit_price_minor, 'USD'
  FROM (SELECT sku_id, unit_price_minor, ceil(sum(qty) * $1::bigint / 100.0)::bigint AS units
          FROM pg_temp.bench_lines GROUP BY sku_id, unit_price_minor) AS wanted
 ORDER BY CASE WHEN $2::bigint = 0 THEN sku_id ELSE hashint8extended(sku_id, 7) END
