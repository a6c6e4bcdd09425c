-- Nothing that is due has waited for the lag or longer.
-- Reads the audit's now and lag; by hand in psql: now() and one hour. A past_due subscription waits for its
-- next try; a period that starts at or after cancel_at is never due.
-- A payment by card waits by the clock alone.
WITH due AS (
  SELECT coalesce(nullif(current_setting('ledgerlock.now', true), '')::timestamptz, now())
         - coalesce(nullif(current_setting('ledgerlock.lag', true), '')::interval, interval '1 hour') AS before_at)
SELECT format('subscription %s', s.subscription_id) AS what, 'due ' || s.next_due_at AS detail
  FROM subscriptions AS s
 WHERE s.state IN ('active', 'past_due') AND s.next_due_at <= (SELECT before_at FROM due)
   AND (s.cancel_at IS NULL
        OR period_start(s.anchor_at, s.unit, s.every, s.next_period_no) < s.cancel_at)
 UNION ALL
SELECT format('order %s', o.order_id), 'placed ' || o.placed_at
  FROM orders AS o
 WHERE o.state = 'pending' AND o.placed_at <= (SELECT before_at FROM due)
 UNION ALL
SELECT format('payment %s', payment_id), format('%s %s/%s is %s since %s', kind, source, leg, state, coalesce(first_sent_at, recorded_at))
  FROM payments
 WHERE state IN ('planned', 'sent', 'unknown')
   AND coalesce(first_sent_at, recorded_at) <= now() - coalesce(nullif(current_setting('ledgerlock.lag', true), '')::interval, interval '1 hour')
 ORDER BY what;
