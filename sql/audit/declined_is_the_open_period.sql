-- A declined charge is the open period of a subscription that is behind, and each one behind has it.
-- Behind is past_due or unpaid; it may have been cancelled or parked since.
SELECT format('subscription %s period %s', subscription_id, coalesce(c.period_no, s.next_period_no)) AS what,
       CASE WHEN c.subscription_id IS NULL THEN format('%s without a declined charge', s.state)
            ELSE format('declined, subscription is %s at period %s',
                        coalesce(s.state, 'missing'), coalesce(s.next_period_no, 0)) END AS detail
  FROM (SELECT subscription_id, period_no FROM ledgerlock.charges WHERE state = 'declined') AS c
  FULL JOIN (SELECT subscription_id, next_period_no, state FROM ledgerlock.subscriptions
              WHERE state <> 'active') AS s USING (subscription_id)
 WHERE (c.subscription_id IS NULL AND s.state IN ('past_due', 'unpaid'))
    OR (c.subscription_id IS NOT NULL AND c.period_no IS DISTINCT FROM s.next_period_no)
 ORDER BY subscription_id, c.period_no;
