-- A declined charge is the open period of a subscription that is behind, tried as often as that says.
-- Behind is past_due or unpaid; it may have been cancelled or parked since.
SELECT format('subscription %s period %s', subscription_id, coalesce(c.period_no, s.next_period_no)) AS what,
       CASE WHEN c.subscription_id IS NULL THEN format('%s without a declined charge', s.state)
            ELSE format('declined, subscription is %s at period %s',
                        coalesce(s.state, 'missing'), coalesce(s.next_period_no, 0)) || format(', tries %s and %s', c.tries, s.retries) END AS detail
  FROM (SELECT subscription_id, period_no, tries FROM open_charges WHERE state = 'declined') AS c
  FULL JOIN (SELECT subscription_id, next_period_no, state, retries, anchor_at, unit, every FROM subscriptions
              WHERE state <> 'active') AS s USING (subscription_id)
 WHERE (c.subscription_id IS NULL AND s.state IN ('past_due', 'unpaid')
        AND period_start(s.anchor_at, s.unit, s.every, s.next_period_no) >= (SELECT first_open())) -- ended before it, and closed with its month
    OR (c.subscription_id IS NOT NULL AND (c.period_no, c.tries) IS DISTINCT FROM (s.next_period_no, s.retries))
 ORDER BY subscription_id, c.period_no;
