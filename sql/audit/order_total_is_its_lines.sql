-- The total of an order is the sum of its lines.
-- Except where a line is not stored, since its SKU is not sold here.
SELECT format('order %s', o.order_id) AS what,
       format('total %s, lines %s', o.total_minor, coalesce(l.sum_minor::text, 'none')) AS detail
  FROM ledgerlock.orders AS o
  LEFT JOIN (SELECT order_id, sum(qty::numeric * unit_price_minor) AS sum_minor
               FROM ledgerlock.order_lines GROUP BY order_id) AS l USING (order_id)
 WHERE o.reason IS DISTINCT FROM 'unknown_sku' AND l.sum_minor IS DISTINCT FROM o.total_minor
 ORDER BY o.order_id;
