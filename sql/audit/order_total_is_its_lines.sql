-- The total of an order is the sum of its lines.
-- An order with a SKU that is not sold here is left out: that line is not stored. Products that may not fit into 64
-- bits are computed apart, as numeric; the others are many, and cheaper as bigint.
SELECT format('order %s', o.order_id) AS what,
       format('total %s, lines %s', o.total_minor, coalesce(l.sum_minor::text, 'none')) AS detail
  FROM open_orders AS o
  LEFT JOIN (SELECT order_id,
                    coalesce(sum(qty * unit_price_minor) FILTER (WHERE greatest(qty, unit_price_minor) < 2147483648), 0)
                    + coalesce(sum(qty::numeric * unit_price_minor)
                               FILTER (WHERE greatest(qty, unit_price_minor) >= 2147483648), 0) AS sum_minor
               FROM order_lines
              WHERE order_id >= (SELECT min(order_id) FROM open_orders) GROUP BY order_id) AS l USING (order_id)
 WHERE o.reason IS DISTINCT FROM 'unknown_sku' AND l.sum_minor IS DISTINCT FROM o.total_minor
 ORDER BY o.order_id;
