-- The fence of a SKU is never below that of its newest movement.
SELECT format('sku %s', s.sku) AS what,
       format('fence %s, movement %s', s.fence, max(m.fence)) AS detail
  FROM stock AS s
  JOIN open_movements AS m USING (sku_id)
 WHERE s.fence < m.fence
 GROUP BY s.sku_id, s.sku, s.fence
 ORDER BY s.sku_id;
