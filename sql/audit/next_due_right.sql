-- An active subscription is due when its next period starts, a past_due one not before, and within a year.
-- Workers find their work by next_due_at: were it wrong, a period would be charged early, late or never.
-- The pauses of retry_schedules are at most 366 days. Now is the later one of the audit's now and the clock.
WITH clock AS (
  SELECT greatest(nullif(current_setting('ledgerlock.now', true), '')::timestamptz, now()) AS now
), wrong AS MATERIALIZED (
  SELECT *
    FROM subscriptions
   WHERE (state = 'active'
          AND next_due_at <> period_start(anchor_at, unit, every, next_period_no))
      OR (state = 'past_due'
          AND (next_due_at < period_start(anchor_at, unit, every, next_period_no)
               OR next_due_at > (SELECT now FROM clock) + interval '366 days')))
SELECT format('subscription %s', subscription_id) AS what,
       format('%s, next_due_at is %s, period %s starts %s', state, next_due_at, next_period_no,
              period_start(anchor_at, unit, every, next_period_no)) AS detail
  FROM wrong
 ORDER BY subscription_id;
