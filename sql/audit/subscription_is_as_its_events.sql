-- The state, retries and cancellation of a subscription are those of its last event; without one it is active and has no end.
-- A subscription that is paying counts as active, or as past due once it was declined: the attempt stands in payments.
-- So are the next period and its time, unless the subscription is active: a period captured at its first try has no event.
WITH last AS (
  SELECT DISTINCT ON (subscription_id) subscription_id,
         CASE WHEN state <> 'paying' THEN state WHEN retries > 0 THEN 'past_due' ELSE 'active' END AS state, retries, cancel_at, next_period_no, next_due_at
    FROM events WHERE subscription_id IS NOT NULL
   ORDER BY subscription_id DESC, event_id DESC
)
SELECT format('subscription %s', subscription_id) AS what,
       format('%s, retries %s, cancelled for %s, period %s due %s; last event: %s, retries %s, cancelled for %s, period %s due %s', s.state,
              s.retries, coalesce(s.cancel_at::text, 'never'), s.next_period_no, s.next_due_at,
              coalesce(l.state, 'none'), l.retries, coalesce(l.cancel_at::text, 'never'), l.next_period_no, l.next_due_at) AS detail
  FROM (SELECT subscription_id, CASE WHEN state <> 'paying' THEN state WHEN retries > 0 THEN 'past_due' ELSE 'active' END AS state,
               retries, cancel_at, next_period_no, next_due_at FROM subscriptions) AS s
  LEFT JOIN last AS l USING (subscription_id)
 WHERE s.state <> coalesce(l.state, 'active') OR s.retries <> coalesce(l.retries, 0) OR s.cancel_at IS DISTINCT FROM l.cancel_at
    OR (s.state <> 'active' AND (s.next_period_no <> l.next_period_no OR s.next_due_at <> l.next_due_at))
    OR (s.state = 'active' AND s.next_period_no < l.next_period_no)
 ORDER BY subscription_id;
