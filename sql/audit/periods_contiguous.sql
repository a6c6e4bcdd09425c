-- The captured periods of a subscription run from 0 without a gap.
WITH alone AS MATERIALIZED (
  SELECT c.subscription_id, c.period_no
    FROM ledgerlock.charges AS c
   WHERE c.state = 'captured' AND c.period_no > 0
     AND NOT EXISTS (SELECT FROM ledgerlock.charges AS before
                      WHERE before.subscription_id = c.subscription_id
                        AND before.period_no = c.period_no - 1 AND before.state = 'captured'))
SELECT format('subscription %s period %s', subscription_id, period_no) AS what,
       format('period %s is not captured', period_no - 1) AS detail
  FROM alone
 ORDER BY subscription_id, period_no;
