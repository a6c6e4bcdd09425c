-- Takes out stock lines that contradict an earlier line or a SKU that exists. $1 text currency of the file.
-- Locks: none. Serves: importing the same file twice changes nothing.
WITH judged AS (
  SELECT i.line,
         CASE WHEN s.sku_id IS NOT NULL
              THEN format('SKU "%s" is already there with other values', i.sku)
              ELSE format('SKU "%s" stands on line %s with other values', i.sku, f.line) END AS reason
    FROM pg_temp.import_stock AS i
    JOIN (SELECT DISTINCT ON (sku) sku, line, quantity, unit_price
            FROM pg_temp.import_stock ORDER BY sku, line) AS f USING (sku)
    LEFT JOIN stock AS s ON s.sku = i.sku
   WHERE CASE WHEN s.sku_id IS NOT NULL
              THEN (s.initial_qty, s.unit_price_minor, s.currency) <> (i.quantity, i.unit_price, $1::text)
              ELSE (f.quantity, f.unit_price) <> (i.quantity, i.unit_price) END
), gone AS (
  DELETE FROM pg_temp.import_stock AS i USING judged AS j WHERE i.line = j.line
  RETURNING i.line, j.reason, i.raw
)
INSERT INTO pg_temp.import_bad (kind, line, reason, raw) SELECT 'stock', line, reason, raw FROM gone
