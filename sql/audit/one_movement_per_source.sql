-- No order and no delivery moved a SKU more than once.
WITH twice AS MATERIALIZED ( -- in the order of the key's index, so that no sort and no hash table is needed
  SELECT sku_id, kind, source, count(*) AS n
    FROM open_movements
   GROUP BY source, sku_id, kind
  HAVING count(*) > 1)
SELECT format('sku %s %s %s', sku_id, kind, source) AS what, format('%s movements', n) AS detail
  FROM twice
 ORDER BY sku_id, kind, source;
