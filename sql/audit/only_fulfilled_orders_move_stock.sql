-- Every sale belongs to a line of a fulfilled order, and carries its times and token.
-- So a rejected, pending or parked order moved nothing.
WITH loose AS MATERIALIZED (
  SELECT m.source, m.sku_id
    FROM open_movements AS m
    LEFT JOIN order_lines AS l ON l.order_id = m.source AND l.sku_id = m.sku_id
    LEFT JOIN orders AS o ON o.order_id = m.source
   WHERE m.kind = 'sale'
     AND (l.order_id IS NULL OR o.order_id IS NULL OR o.state <> 'fulfilled' OR o.fence <> m.fence
          OR o.decided_at <> m.moved_at
          OR o.placed_at <> m.source_at))
SELECT format('order %s sku %s', source, sku_id) AS what, format('moved %s units', qty) AS detail
  FROM open_movements JOIN loose USING (source, sku_id)
 WHERE kind = 'sale'
 ORDER BY source, sku_id;
