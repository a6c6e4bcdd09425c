-- The same on the unguarded side, with a stocktaking before: units sold above those received are noted for ever.
-- Columns: none. Locks: the rows.
UPDATE ledgerlock_plain.stock AS s
   SET oversold = s.oversold + greatest(n.sold - s.received, 0), received = greatest(n.sold, s.received) + 60, on_hand = s.on_hand + 60
  FROM (SELECT sku_id, sum(qty)::bigint AS sold FROM ledgerlock_plain.charges WHERE kind = 'order' GROUP BY sku_id) AS n
 WHERE n.sku_id = s.sku_id AND s.on_hand < 6
