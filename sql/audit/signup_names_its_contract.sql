-- Each key of a sign-up names a subscription of its user.
WITH astray AS MATERIALIZED (
  SELECT s.user_id, s.idempotency_key, s.subscription_id
    FROM signups AS s
   WHERE NOT EXISTS (SELECT FROM contracts AS c WHERE c.user_id = s.user_id AND c.subscription_id = s.subscription_id))
SELECT format('user %s key %s', user_id, idempotency_key) AS what,
       format('subscription %s is no contract of the user', subscription_id) AS detail
  FROM astray
 ORDER BY what;
