-- The fence of a SKU is never below that of its newest movement.
SELECT format('sku %s', s.sku) AS what,
       format('fence %s, movement %s', s.fence, m.fence) AS detail
  FROM ledgerlock.stock AS s
  JOIN (SELECT sku_id, max(fence) AS fence FROM ledgerlock.stock_movements GROUP BY sku_id) AS m
       USING (sku_id)
 WHERE s.fence < m.fence
 ORDER BY s.sku_id;
