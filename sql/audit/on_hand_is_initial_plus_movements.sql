-- What is on hand of every SKU is its initial quantity plus its movements.
SELECT format('sku %s', coalesce(s.sku, sku_id::text)) AS what,
       format('on hand %s, initial %s, movements %s', coalesce(s.on_hand::text, 'missing'),
              coalesce(s.initial_qty, 0), coalesce(m.net_qty, 0)) AS detail
  FROM ledgerlock.stock AS s
  FULL JOIN (SELECT sku_id, sum(qty) AS net_qty FROM ledgerlock.stock_movements GROUP BY sku_id) AS m
       USING (sku_id)
 WHERE s.on_hand IS DISTINCT FROM coalesce(s.initial_qty, 0) + coalesce(m.net_qty, 0)
 ORDER BY sku_id;
