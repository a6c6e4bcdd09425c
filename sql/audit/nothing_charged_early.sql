-- No period is charged before it starts.
WITH early AS MATERIALIZED ( -- filtered first, sorted then: rows in the order of a key are read from all over the table
  SELECT subscription_id, period_no, period_start, charged_at
    FROM ledgerlock.charges
   WHERE charged_at < period_start)
SELECT format('subscription %s period %s', subscription_id, period_no) AS what,
       format('starts %s, charged %s', period_start, charged_at) AS detail
  FROM early
 ORDER BY subscription_id, period_no;
