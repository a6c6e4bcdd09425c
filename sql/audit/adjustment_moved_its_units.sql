-- Every adjustment moved its units, and every movement of that kind has its adjustment, of the same SKU, quantity and time.
SELECT format('adjustment %s', coalesce(a.adjustment_id, m.source)) AS what,
       format('%s units of SKU %s; moved: %s of SKU %s', coalesce(a.qty::text, 'no'), a.sku_id, coalesce(m.qty::text, 'nothing'), m.sku_id) AS detail
  FROM (SELECT * FROM adjustments WHERE at >= (SELECT first_open())) AS a
  FULL JOIN (SELECT * FROM open_movements WHERE kind = 'adjust') AS m ON m.source = a.adjustment_id
 WHERE (m.sku_id, m.qty, m.source_at, m.moved_at) IS DISTINCT FROM (a.sku_id, a.qty, a.at, a.at)
 ORDER BY 1;
