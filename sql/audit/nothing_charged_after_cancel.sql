-- No captured period starts at or after the instant its subscription was cancelled for.
SELECT format('subscription %s period %s', c.subscription_id, c.period_no) AS what,
       format('starts %s, cancelled for %s', c.period_start, s.cancel_at) AS detail
  FROM ledgerlock.charges AS c
  JOIN ledgerlock.subscriptions AS s USING (subscription_id)
 WHERE c.state = 'captured' AND s.cancel_at IS NOT NULL AND c.period_start >= s.cancel_at
 ORDER BY c.subscription_id, c.period_no;
