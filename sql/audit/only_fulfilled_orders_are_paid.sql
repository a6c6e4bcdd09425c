-- Every payment belongs to a fulfilled order.
-- So a rejected, pending or parked order cost nothing.
SELECT format('order %s', t.source) AS what,
       format('payment %s of user %s amount %s', t.leg, t.user_id, t.amount_minor) AS detail
  FROM ledgerlock.transfers AS t
 WHERE t.kind = 'payment'
   AND NOT EXISTS (SELECT FROM ledgerlock.orders AS o
                    WHERE o.order_id = t.source AND o.state = 'fulfilled')
 ORDER BY t.source, t.leg;
