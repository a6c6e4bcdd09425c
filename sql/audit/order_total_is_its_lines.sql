-- The total of an order is the sum of its lines.
-- Except where a line is not stored, since its SKU is not sold here. Products that 64 bits may not hold are taken
-- apart from the others, which are many and cheaper as they are.
SELECT format('order %s', o.order_id) AS what,
       format('total %s, lines %s', o.total_minor, coalesce(l.sum_minor::text, 'none')) AS detail
  FROM ledgerlock.orders AS o
  LEFT JOIN (SELECT order_id,
                    coalesce(sum(qty * unit_price_minor) FILTER (WHERE greatest(qty, unit_price_minor) < 2147483648), 0)
                    + coalesce(sum(qty::numeric * unit_price_minor)
                               FILTER (WHERE greatest(qty, unit_price_minor) >= 2147483648), 0) AS sum_minor
               FROM ledgerlock.order_lines GROUP BY order_id) AS l USING (order_id)
 WHERE o.reason IS DISTINCT FROM 'unknown_sku' AND l.sum_minor IS DISTINCT FROM o.total_minor
 ORDER BY o.order_id;
