-- Makes the SKUs that are not there yet. $1 text currency. Columns: new bigint, staged bigint, units bigint.
-- Locks: the new rows.
WITH made AS (
  INSERT INTO stock (sku, initial_qty, on_hand, unit_price_minor, currency)
  SELECT sku, quantity, quantity, unit_price, $1::text
    FROM (SELECT DISTINCT ON (sku) * FROM pg_temp.import_stock ORDER BY sku, line) AS i
   WHERE NOT EXISTS (SELECT FROM stock AS s WHERE s.sku = i.sku)
   ORDER BY i.line
  RETURNING initial_qty
)
SELECT count(*), (SELECT count(*) FROM pg_temp.import_stock), coalesce(sum(initial_qty), 0)::bigint FROM made
