-- No idempotency key of a user has more than one order.
SELECT format('user %s key %s', user_id, idempotency_key) AS what,
       format('%s orders', count(*)) AS detail
  FROM orders
 GROUP BY user_id, idempotency_key
HAVING count(*) > 1
 ORDER BY user_id, idempotency_key;
