-- The fence of a SKU is never below that of its newest sale.
SELECT format('sku %s', s.sku) AS what,
       format('fence %s, sale %s', s.fence, max(m.token)) AS detail
  FROM stock AS s
  JOIN open_stock_ledger AS m USING (sku_id)
 WHERE s.fence < m.token
 GROUP BY s.sku_id, s.sku, s.fence
 ORDER BY s.sku_id;
