-- The quantity on hand of every SKU is its initial quantity plus its entries of stock_ledger.
-- Entries of closed months are summed up in sealed_stock.
SELECT format('sku %s', coalesce(s.sku, sku_id::text)) AS what,
       format('on hand %s, initial %s, ledger %s', coalesce(s.on_hand::text, 'missing'),
              coalesce(s.initial_qty, 0), coalesce(m.net_qty, 0)) AS detail
  FROM stock AS s
  FULL JOIN (SELECT sku_id, sum(qty) AS net_qty
               FROM (SELECT sku_id, sum(qty) AS qty FROM open_stock_ledger GROUP BY sku_id
                      UNION ALL SELECT sku_id, received + returned + adjusted - sold FROM sealed_stock) AS moved
              GROUP BY sku_id) AS m
       USING (sku_id)
 WHERE s.on_hand IS DISTINCT FROM coalesce(s.initial_qty, 0) + coalesce(m.net_qty, 0)
 ORDER BY sku_id;
