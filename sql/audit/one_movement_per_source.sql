-- No order and no delivery moved a SKU more than once.
SELECT format('sku %s %s %s', sku_id, kind, source) AS what,
       format('%s movements', count(*)) AS detail
  FROM ledgerlock.stock_movements
 GROUP BY sku_id, kind, source
HAVING count(*) > 1
 ORDER BY sku_id, kind, source;
