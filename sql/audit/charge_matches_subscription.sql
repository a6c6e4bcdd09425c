-- Every charge has its subscription, that subscription's user and its amount.
SELECT format('subscription %s period %s', c.subscription_id, c.period_no) AS what,
       CASE WHEN s.subscription_id IS NULL THEN 'no such subscription'
            ELSE format('user %s amount %s, subscription says user %s amount %s',
                        c.user_id, c.amount_minor, s.user_id, s.amount_minor) END AS detail
  FROM ledgerlock.charges AS c
  LEFT JOIN ledgerlock.subscriptions AS s USING (subscription_id)
 WHERE s.subscription_id IS NULL OR c.user_id <> s.user_id OR c.amount_minor <> s.amount_minor
 ORDER BY c.subscription_id, c.period_no;
