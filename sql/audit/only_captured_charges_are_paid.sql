-- Every transfer for a subscription belongs to a captured charge.
-- The indexes of both keys tell which transfers have no charge at all; charges that are not captured are few.
WITH candidate AS MATERIALIZED (
  SELECT t.source, t.leg
    FROM open_transfers AS t
   WHERE t.kind = 'charge'
     AND NOT EXISTS (SELECT FROM open_charges AS c
                      WHERE c.subscription_id = t.source AND c.period_no = t.leg AND c.period_start = t.source_at)
   UNION
  SELECT subscription_id, period_no FROM open_charges WHERE state <> 'captured'
), found AS MATERIALIZED (
  SELECT source, leg, source_at, user_id, amount_minor
    FROM open_transfers JOIN candidate USING (source, leg)
   WHERE kind = 'charge'
)
SELECT format('subscription %s period %s', t.source, t.leg) AS what,
       format('transfer of user %s amount %s', t.user_id, t.amount_minor) AS detail
  FROM found AS t
 WHERE NOT EXISTS (SELECT FROM open_charges AS c
                    WHERE c.subscription_id = t.source AND c.period_no = t.leg AND c.period_start = t.source_at
                      AND c.state = 'captured')
 ORDER BY t.source, t.leg;
