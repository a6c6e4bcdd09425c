-- Every order belongs to a user, and is in the currency of that wallet.
SELECT format('order %s', o.order_id) AS what,
       format('in %s for user %s, wallet %s', o.currency, o.user_id, coalesce('in ' || u.currency, 'missing')) AS detail
  FROM orders AS o
  LEFT JOIN users AS u USING (user_id)
 WHERE u.currency IS DISTINCT FROM o.currency
 ORDER BY o.order_id;
