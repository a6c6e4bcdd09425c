-- Every sale belongs to a line of a fulfilled order.
-- So a rejected, pending or parked order moved nothing.
WITH loose AS MATERIALIZED (
  SELECT source, sku_id, qty
    FROM ledgerlock.stock_movements AS m
   WHERE kind = 'sale'
     AND NOT EXISTS (SELECT FROM ledgerlock.orders AS o
                      WHERE o.order_id = m.source AND o.state = 'fulfilled')
   UNION ALL
  SELECT m.source, m.sku_id, m.qty
    FROM ledgerlock.stock_movements AS m
    JOIN ledgerlock.orders AS o ON o.order_id = m.source AND o.state = 'fulfilled'
   WHERE m.kind = 'sale'
     AND NOT EXISTS (SELECT FROM ledgerlock.order_lines AS l
                      WHERE l.order_id = m.source AND l.sku_id = m.sku_id))
SELECT format('order %s sku %s', source, sku_id) AS what, format('moved %s units', qty) AS detail
  FROM loose
 ORDER BY source, sku_id;
