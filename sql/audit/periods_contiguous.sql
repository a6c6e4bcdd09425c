-- The periods of a subscription that are captured, waived, skipped or written off run from 0 without a gap.
-- A period before that began in a closed month was proved when that was closed.
WITH alone AS MATERIALIZED (
  SELECT c.subscription_id, c.period_no
    FROM open_charges AS c
   WHERE c.state <> 'declined' AND c.period_no > 0
     AND NOT EXISTS (SELECT FROM open_charges AS before
                      WHERE before.subscription_id = c.subscription_id
                        AND before.period_no = c.period_no - 1 AND before.state <> 'declined'))
SELECT format('subscription %s period %s', subscription_id, period_no) AS what,
       format('period %s is open', period_no - 1) AS detail
  FROM alone LEFT JOIN subscriptions AS s USING (subscription_id)
 WHERE coalesce(period_start(s.anchor_at, s.unit, s.every, period_no - 1) >= (SELECT first_open()), true)
 ORDER BY subscription_id, period_no;
