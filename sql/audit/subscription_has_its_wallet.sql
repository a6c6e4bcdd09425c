-- Every subscription belongs to a user, and is in the currency of that wallet.
SELECT format('subscription %s', s.subscription_id) AS what,
       format('in %s for user %s, wallet %s', s.currency, s.user_id, coalesce('in ' || u.currency, 'missing')) AS detail
  FROM subscriptions AS s
  LEFT JOIN users AS u USING (user_id)
 WHERE u.currency IS DISTINCT FROM s.currency
 ORDER BY s.subscription_id;
