-- No period that is captured, waived or skipped starts at or after the cancel_at of its subscription.
SELECT format('subscription %s period %s', c.subscription_id, c.period_no) AS what,
       format('starts %s, cancelled for %s', c.period_start, s.cancel_at) AS detail
  FROM open_charges AS c
  JOIN subscriptions AS s USING (subscription_id)
 WHERE c.state <> 'declined' AND s.cancel_at IS NOT NULL AND c.period_start >= s.cancel_at
 ORDER BY c.subscription_id, c.period_no;
