-- The next period of a subscription is the one after its last captured period.
-- The index of the key tells, whatever the state, which have no charge of the period before and which have one of the
-- next or a later one; what that does not clear is looked up.
WITH suspect AS MATERIALIZED (
  SELECT s.subscription_id
    FROM (SELECT subscription_id, next_period_no FROM ledgerlock.subscriptions ORDER BY subscription_id OFFSET 0) AS s
    LEFT JOIN ledgerlock.charges AS c
      ON c.subscription_id = s.subscription_id AND c.period_no >= s.next_period_no - 1
   WHERE (c.subscription_id IS NULL AND s.next_period_no <> 0) OR c.period_no >= s.next_period_no
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
