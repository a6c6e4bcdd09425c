-- No contract (user, plan, anchor) stands twice, so nobody pays for the same thing twice.
-- The rows are sorted first: so many groups are found faster in order than in a hash table larger than the cache.
WITH contract AS (
  SELECT user_id, plan, anchor_at FROM subscriptions
   ORDER BY user_id, anchor_at, plan OFFSET 0
), twice AS MATERIALIZED (
  SELECT user_id, plan, anchor_at, count(*) AS n
    FROM contract
   GROUP BY user_id, anchor_at, plan
  HAVING count(*) > 1)
SELECT format('user %s plan %s', user_id, plan) AS what,
       format('%s subscriptions from %s', n, anchor_at) AS detail
  FROM twice
 ORDER BY user_id, plan, anchor_at;
