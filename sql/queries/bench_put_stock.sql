-- Makes every SKU that is asked for, with so many percent of what all orders want of it.
-- $1 bigint: percent. Columns: none. Locks: the new rows.
INSERT INTO ledgerlock.stock (sku_id, sku, initial_qty, on_hand, unit_price_minor, currency)
SELECT sku_id, 'bench-' || sku_id, units, units, unit_price_minor, 'USD'
  FROM (SELECT sku_id, unit_price_minor, ceil(sum(qty) * $1::bigint / 100.0)::bigint AS units
          FROM pg_temp.bench_lines GROUP BY sku_id, unit_price_minor) AS wanted
