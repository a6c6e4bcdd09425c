-- A fulfilled order moved exactly the units of its lines.
SELECT format('order %s sku %s', l.order_id, l.sku_id) AS what,
       format('ordered %s, moved %s', l.qty, coalesce(-m.qty, 0)) AS detail
  FROM (SELECT order_id, sku_id, sum(qty) AS qty FROM ledgerlock.order_lines
         GROUP BY order_id, sku_id) AS l
  JOIN ledgerlock.orders AS o ON o.order_id = l.order_id AND o.state = 'fulfilled'
  LEFT JOIN ledgerlock.stock_movements AS m
    ON m.kind = 'sale' AND m.source = l.order_id AND m.sku_id = l.sku_id
 WHERE m.qty IS DISTINCT FROM -l.qty
 ORDER BY l.order_id, l.sku_id;
