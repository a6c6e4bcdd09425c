-- The units that are held of every SKU are those of the orders that are paying.
SELECT format('sku %s', coalesce(s.sku, sku_id::text)) AS what,
       format('held %s of %s on hand, orders that are paying %s', coalesce(s.held::text, 'missing'), s.on_hand, coalesce(h.qty, 0)) AS detail
  FROM stock AS s
  FULL JOIN (SELECT l.sku_id, sum(l.qty) AS qty FROM orders AS o JOIN order_lines AS l USING (order_id)
              WHERE o.state = 'paying' GROUP BY l.sku_id) AS h USING (sku_id)
 WHERE s.held IS DISTINCT FROM coalesce(h.qty, 0) OR (s.held > 0 AND s.held > s.on_hand)
 ORDER BY sku_id;
