-- A subscription is cancelled only when no period before its cancel_at is left to charge.
SELECT format('subscription %s', subscription_id) AS what,
       format('period %s starts %s, cancelled for %s', next_period_no,
              period_start(anchor_at, unit, every, next_period_no),
              coalesce(cancel_at::text, 'no date')) AS detail
  FROM subscriptions
 WHERE state = 'cancelled'
   AND (cancel_at IS NULL OR period_start(anchor_at, unit, every, next_period_no) < cancel_at)
 ORDER BY subscription_id;
