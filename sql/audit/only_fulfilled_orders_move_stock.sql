-- Every sale belongs to a line of a fulfilled order.
-- So a rejected, pending or parked order moved nothing.
SELECT format('order %s sku %s', m.source, m.sku_id) AS what,
       format('moved %s units', m.qty) AS detail
  FROM ledgerlock.stock_movements AS m
  LEFT JOIN (SELECT order_id, sku_id FROM ledgerlock.order_lines
               JOIN ledgerlock.orders USING (order_id) WHERE orders.state = 'fulfilled') AS l
    ON l.order_id = m.source AND l.sku_id = m.sku_id
 WHERE m.kind = 'sale' AND l.order_id IS NULL
 ORDER BY m.source, m.sku_id;
