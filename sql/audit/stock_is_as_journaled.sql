-- Name, initial quantity, price and currency of a SKU are those of its last journal entry.
WITH last AS (
  SELECT DISTINCT ON (sku_id) sku_id, sku, initial_qty, unit_price_minor, currency
    FROM stock_journal
   ORDER BY sku_id DESC, entry_id DESC
)
SELECT format('sku %s', sku_id) AS what,
       format('%s; journal: %s', coalesce((s.sku, s.initial_qty, s.unit_price_minor, s.currency)::text, 'gone'),
              coalesce((l.sku, l.initial_qty, l.unit_price_minor, l.currency)::text, 'no entry')) AS detail
  FROM stock AS s FULL JOIN last AS l USING (sku_id)
 WHERE s.sku IS NULL OR l.sku IS NULL OR s.sku <> l.sku OR s.initial_qty <> l.initial_qty
    OR s.unit_price_minor <> l.unit_price_minor OR s.currency <> l.currency
 ORDER BY sku_id;
