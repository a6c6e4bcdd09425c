-- A sale takes units away, a delivery and a return add them, an adjustment does either, and nothing else moves stock.
SELECT format('sku %s %s %s', sku_id, kind, source) AS what,
       format('%s units', qty) AS detail
  FROM open_movements
 WHERE NOT ((kind = 'sale' AND qty < 0) OR (kind IN ('receive', 'return') AND qty > 0)
            OR (kind = 'adjust' AND qty <> 0))
 ORDER BY sku_id, kind, source;
