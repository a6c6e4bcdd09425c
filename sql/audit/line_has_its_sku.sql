-- Every line of an order names a SKU that exists.
SELECT format('order %s', l.order_id) AS what, format('a line of SKU %s, which does not exist', l.sku_id) AS detail
  FROM order_lines AS l
 WHERE NOT EXISTS (SELECT FROM stock AS s WHERE s.sku_id = l.sku_id)
 ORDER BY l.order_id, l.sku_id;
