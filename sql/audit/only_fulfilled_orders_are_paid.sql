-- Every payment belongs to a fulfilled order, and to the month in which it was placed.
-- So a rejected, pending or parked order cost nothing.
SELECT format('order %s', t.source) AS what,
       format('payment %s of user %s amount %s', t.leg, t.user_id, t.amount_minor) AS detail
  FROM open_transfers AS t
 WHERE t.kind = 'payment'
   AND NOT EXISTS (SELECT FROM orders AS o
                    WHERE o.order_id = t.source AND o.state = 'fulfilled' AND o.placed_at = t.source_at)
 ORDER BY t.source, t.leg;
