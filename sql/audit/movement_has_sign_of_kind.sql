-- A sale takes units away, a delivery adds them, and nothing else moves stock.
SELECT format('sku %s %s %s', sku_id, kind, source) AS what,
       format('%s units', qty) AS detail
  FROM ledgerlock.stock_movements
 WHERE NOT ((kind = 'sale' AND qty < 0) OR (kind = 'receive' AND qty > 0))
 ORDER BY sku_id, kind, source;
