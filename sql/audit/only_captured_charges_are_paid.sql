-- Every transfer for a subscription belongs to a captured charge.
-- The indexes of both keys tell which belong to none, whatever its state; those of one that is not captured are few.
WITH suspect AS MATERIALIZED (
  SELECT t.source, t.leg
    FROM ledgerlock.transfers AS t
   WHERE t.kind = 'charge'
     AND NOT EXISTS (SELECT FROM ledgerlock.charges AS c
                      WHERE c.subscription_id = t.source AND c.period_no = t.leg)
   UNION
  SELECT subscription_id, period_no FROM ledgerlock.charges WHERE state <> 'captured'
), found AS MATERIALIZED (
  SELECT source, leg, user_id, amount_minor
    FROM ledgerlock.transfers JOIN suspect USING (source, leg)
   WHERE kind = 'charge'
)
SELECT format('subscription %s period %s', t.source, t.leg) AS what,
       format('transfer of user %s amount %s', t.user_id, t.amount_minor) AS detail
  FROM found AS t
 WHERE NOT EXISTS (SELECT FROM ledgerlock.charges AS c
                    WHERE c.subscription_id = t.source AND c.period_no = t.leg AND c.state = 'captured')
 ORDER BY t.source, t.leg;
