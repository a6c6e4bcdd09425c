-- The time of a deposit or a delivery is the one that it was booked with.
-- The time names the month that the row belongs to. A charge, a payment or a sale has the time of its period or order.
SELECT format('deposit %s/%s', source, leg) AS what, format('of %s, booked %s', source_at, moved_at) AS detail
  FROM open_transfers
 WHERE kind = 'deposit' AND source_at <> moved_at
 UNION ALL
SELECT format('sku %s delivery %s', sku_id, source), format('of %s, booked %s', source_at, moved_at)
  FROM open_movements
 WHERE kind = 'receive' AND source_at <> moved_at
 ORDER BY what;
