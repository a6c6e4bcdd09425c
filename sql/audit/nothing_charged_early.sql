-- No period is charged, declined or waived before it starts; a pause skips it before.
WITH early AS MATERIALIZED ( -- filter first, sort afterwards: reading in key order would jump through the whole table
  SELECT subscription_id, period_no, period_start, charged_at
    FROM open_charges
   WHERE charged_at < period_start AND state <> 'skipped')
SELECT format('subscription %s period %s', subscription_id, period_no) AS what,
       format('starts %s, charged %s', period_start, charged_at) AS detail
  FROM early
 ORDER BY subscription_id, period_no;
