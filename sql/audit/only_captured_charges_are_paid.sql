-- Every transfer for a subscription belongs to a captured charge.
WITH loose AS MATERIALIZED (
  SELECT t.source, t.leg, t.user_id, t.amount_minor
    FROM ledgerlock.transfers AS t
   WHERE t.kind = 'charge'
     AND NOT EXISTS (SELECT FROM ledgerlock.charges AS c
                      WHERE c.subscription_id = t.source AND c.period_no = t.leg AND c.state = 'captured'))
SELECT format('subscription %s period %s', source, leg) AS what,
       format('transfer of user %s amount %s', user_id, amount_minor) AS detail
  FROM loose
 ORDER BY source, leg;
