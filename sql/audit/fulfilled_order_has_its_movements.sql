-- A fulfilled order moved exactly the units of its lines.
-- Quantities that fit into 32 bits are summed apart, as bigint; the sum of a bigint is numeric and slower.
-- Orders are numbered as they are made, so the lines of older ones are not read.
WITH line AS (
  SELECT order_id, sku_id, sum(qty::int4) FILTER (WHERE qty BETWEEN -2147483648 AND 2147483647) AS qty,
         sum(qty) FILTER (WHERE qty NOT BETWEEN -2147483648 AND 2147483647) AS huge_qty
    FROM order_lines WHERE order_id >= (SELECT min(order_id) FROM open_orders) GROUP BY order_id, sku_id
), wrong AS MATERIALIZED (
  SELECT l.order_id, l.sku_id, coalesce(l.qty, 0) + coalesce(l.huge_qty, 0) AS qty, m.qty AS moved
    FROM line AS l
    LEFT JOIN open_movements AS m
      ON m.kind = 'sale' AND m.source = l.order_id AND m.sku_id = l.sku_id
   WHERE m.qty IS DISTINCT FROM -l.qty OR l.huge_qty IS NOT NULL
)
SELECT format('order %s sku %s', order_id, sku_id) AS what,
       format('ordered %s, moved %s', qty, coalesce(-moved, 0)) AS detail
  FROM wrong
  JOIN open_orders USING (order_id)
 WHERE state = 'fulfilled' AND moved IS DISTINCT FROM -qty
 ORDER BY order_id, sku_id;
