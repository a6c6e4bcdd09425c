-- No period is charged before it starts.
SELECT format('subscription %s period %s', subscription_id, period_no) AS what,
       format('starts %s, charged %s', period_start, charged_at) AS detail
  FROM ledgerlock.charges
 WHERE charged_at < period_start
 ORDER BY subscription_id, period_no;
