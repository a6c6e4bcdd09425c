-- Every sale belongs to a line of a fulfilled order.
-- So a rejected, pending or parked order moved nothing. The indexes of the keys tell which sales have no line or no
-- order; orders in other states are looked up.
WITH loose AS MATERIALIZED (
  SELECT m.source, m.sku_id
    FROM ledgerlock.stock_movements AS m
    LEFT JOIN ledgerlock.order_lines AS l ON l.order_id = m.source AND l.sku_id = m.sku_id
    LEFT JOIN ledgerlock.orders AS o ON o.order_id = m.source
   WHERE m.kind = 'sale' AND (l.order_id IS NULL OR o.order_id IS NULL)
   UNION
  SELECT m.source, m.sku_id
    FROM ledgerlock.stock_movements AS m
    JOIN ledgerlock.orders AS o ON o.order_id = m.source AND o.state <> 'fulfilled'
   WHERE m.kind = 'sale')
SELECT format('order %s sku %s', source, sku_id) AS what, format('moved %s units', qty) AS detail
  FROM ledgerlock.stock_movements JOIN loose USING (source, sku_id)
 WHERE kind = 'sale'
 ORDER BY source, sku_id;
