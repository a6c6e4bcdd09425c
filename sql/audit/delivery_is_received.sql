-- Every delivery moved its units into stock, and every movement of that kind has its delivery.
-- Without its row, which has the key, the same delivery could be received again.
SELECT format('delivery %s of SKU %s', coalesce(d.delivery_id, m.source), coalesce(d.sku_id, m.sku_id)) AS what,
       format('%s moved, %s delivered', coalesce(m.qty::text, 'nothing'), coalesce(d.qty::text, 'nothing')) AS detail
  FROM (SELECT * FROM deliveries WHERE at >= (SELECT first_open())) AS d
  FULL JOIN (SELECT sku_id, source, abs(qty) AS qty, source_at FROM open_movements WHERE kind = 'receive') AS m
    ON m.sku_id = d.sku_id AND m.source = d.delivery_id
 WHERE (m.qty, m.source_at) IS DISTINCT FROM (d.qty, d.at)
 ORDER BY 1;
