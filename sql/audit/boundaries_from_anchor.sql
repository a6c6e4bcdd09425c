-- Every charged period starts and ends where the anchor of its subscription says.
WITH shifted AS MATERIALIZED (
  SELECT c.subscription_id, c.period_no, c.period_start, c.period_end, s.anchor_at, s.unit, s.every
    FROM open_charges AS c
    JOIN subscriptions AS s USING (subscription_id)
   WHERE c.period_start <> period_start(s.anchor_at, s.unit, s.every, c.period_no)
      OR c.period_end <> period_start(s.anchor_at, s.unit, s.every, c.period_no + 1))
SELECT format('subscription %s period %s', subscription_id, period_no) AS what,
       format('runs from %s to %s, anchor says %s to %s', period_start, period_end,
              period_start(anchor_at, unit, every, period_no),
              period_start(anchor_at, unit, every, period_no + 1)) AS detail
  FROM shifted
 ORDER BY subscription_id, period_no;
