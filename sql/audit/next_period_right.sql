-- The next period of a subscription is the one after its last captured period.
WITH last AS (
  SELECT subscription_id, max(period_no) AS last_no FROM ledgerlock.charges
   WHERE state = 'captured' GROUP BY subscription_id
), wrong AS MATERIALIZED (
  SELECT subscription_id, next_period_no, last_no
    FROM ledgerlock.subscriptions LEFT JOIN last USING (subscription_id)
   WHERE next_period_no <> coalesce(last_no + 1, 0))
SELECT format('subscription %s', subscription_id) AS what,
       format('next_period_no is %s, captured up to %s', next_period_no, coalesce(last_no::text, 'none')) AS detail
  FROM wrong
 ORDER BY subscription_id;
