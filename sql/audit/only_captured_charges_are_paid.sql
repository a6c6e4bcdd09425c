-- Every transfer for a subscription belongs to a captured charge.
SELECT format('subscription %s period %s', t.source, t.leg) AS what,
       format('transfer of user %s amount %s', t.user_id, t.amount_minor) AS detail
  FROM ledgerlock.transfers AS t
 WHERE t.kind = 'charge'
   AND NOT EXISTS (SELECT FROM ledgerlock.charges AS c
                    WHERE c.subscription_id = t.source AND c.period_no = t.leg AND c.state = 'captured')
 ORDER BY t.source, t.leg;
