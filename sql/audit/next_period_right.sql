-- The next period of a subscription is the one after its last captured period.
SELECT format('subscription %s', s.subscription_id) AS what,
       format('next_period_no is %s, captured up to %s', s.next_period_no,
              coalesce(c.last_no::text, 'none')) AS detail
  FROM ledgerlock.subscriptions AS s
  LEFT JOIN (SELECT subscription_id, max(period_no) AS last_no FROM ledgerlock.charges
              WHERE state = 'captured' GROUP BY subscription_id) AS c USING (subscription_id)
 WHERE s.next_period_no <> coalesce(c.last_no + 1, 0)
 ORDER BY s.subscription_id;
