-- The next period of a subscription is the one after its last that is captured, waived or skipped.
-- The index of the key alone tells which subscriptions have no charge of the period before, and which have one of the
-- next or a later period. Only those candidates, and subscriptions with a declined charge, are read in full.
WITH candidate AS MATERIALIZED (
  SELECT s.subscription_id
    FROM (SELECT subscription_id, next_period_no FROM subscriptions ORDER BY subscription_id OFFSET 0) AS s
    LEFT JOIN open_charges AS c
      ON c.subscription_id = s.subscription_id AND c.period_no >= s.next_period_no - 1
   WHERE (c.subscription_id IS NULL AND s.next_period_no <> 0) OR c.period_no >= s.next_period_no
   UNION
  SELECT subscription_id FROM open_charges WHERE state = 'declined'
), settled AS (
  SELECT subscription_id, max(period_no) AS last_no
    FROM open_charges JOIN candidate USING (subscription_id)
   WHERE state <> 'declined'
   GROUP BY subscription_id
)
-- A last period that began in a closed month was proved when that was closed.
SELECT format('subscription %s', subscription_id) AS what,
       format('next_period_no is %s, settled up to %s', next_period_no, coalesce(last_no::text, 'none')) AS detail
  FROM candidate
  JOIN subscriptions USING (subscription_id)
  LEFT JOIN settled USING (subscription_id)
 WHERE next_period_no <> coalesce(last_no + 1, 0)
   AND (last_no IS NOT NULL OR next_period_no = 0
        OR period_start(anchor_at, unit, every, next_period_no - 1) >= (SELECT first_open()))
 ORDER BY subscription_id;
