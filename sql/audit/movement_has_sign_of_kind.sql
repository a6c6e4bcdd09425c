-- A sale takes units away, a delivery adds them, and nothing else moves stock.
SELECT format('movement %s', movement_id) AS what,
       format('%s of %s units of sku %s', kind, qty, sku_id) AS detail
  FROM ledgerlock.stock_movements
 WHERE NOT ((kind = 'sale' AND qty < 0) OR (kind = 'receive' AND qty > 0))
 ORDER BY movement_id;
