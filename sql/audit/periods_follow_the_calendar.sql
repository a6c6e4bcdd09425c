-- The next period of every active subscription begins as many days, weeks, months or years after the anchor as its number says.
-- Counted by year, month and day of both times: period_start, by which everybody else counts, has no part in it.
WITH next AS (
  SELECT subscription_id, unit, next_period_no, next_due_at, anchor_at, next_period_no * every AS n,
         next_due_at AT TIME ZONE 'UTC' AS due, anchor_at AT TIME ZONE 'UTC' AS anchor
    FROM subscriptions WHERE state = 'active' AND retries = 0
), strange AS (
  SELECT * FROM next
   WHERE CASE WHEN unit IN ('day', 'week')
              THEN date_part('epoch', due - anchor) <> n * CASE unit WHEN 'day' THEN 86400 ELSE 604800 END
              ELSE (date_part('year', due) - date_part('year', anchor)) * 12 + date_part('month', due) - date_part('month', anchor)
                     <> n * CASE unit WHEN 'month' THEN 1 ELSE 12 END
                   OR due::time <> anchor::time
                   OR date_part('day', due) <> least(date_part('day', anchor),
                                                     date_part('day', date_trunc('month', due) + interval '1 month -1 day')) END)
SELECT format('subscription %s', subscription_id) AS what,
       format('period %s begins %s, anchor %s, in units of a %s', next_period_no, next_due_at, anchor_at, unit) AS detail
  FROM strange
 ORDER BY subscription_id;
