-- The next period of a subscription is the one after its last captured period.
-- The index of the key tells the last one whatever its state; what that does not clear is looked up.
WITH last AS (
  SELECT subscription_id, max(period_no) AS last_no FROM ledgerlock.charges GROUP BY subscription_id
), suspect AS MATERIALIZED (
  SELECT subscription_id FROM ledgerlock.subscriptions LEFT JOIN last USING (subscription_id)
   WHERE next_period_no <> coalesce(last_no + 1, 0)
   UNION
  SELECT subscription_id FROM ledgerlock.charges WHERE state <> 'captured'
), captured AS (
  SELECT subscription_id, max(period_no) AS last_no
    FROM ledgerlock.charges JOIN suspect USING (subscription_id)
   WHERE state = 'captured'
   GROUP BY subscription_id
)
SELECT format('subscription %s', subscription_id) AS what,
       format('next_period_no is %s, captured up to %s', next_period_no, coalesce(last_no::text, 'none')) AS detail
  FROM suspect
  JOIN ledgerlock.subscriptions USING (subscription_id)
  LEFT JOIN captured USING (subscription_id)
 WHERE next_period_no <> coalesce(last_no + 1, 0)
 ORDER BY subscription_id;
