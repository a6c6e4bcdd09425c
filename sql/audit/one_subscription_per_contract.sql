-- No contract (user, plan, anchor) stands twice, so nobody pays for the same thing twice.
SELECT format('user %s plan %s', user_id, plan) AS what,
       format('%s subscriptions from %s', count(*), anchor_at) AS detail
  FROM ledgerlock.subscriptions
 GROUP BY user_id, plan, anchor_at
HAVING count(*) > 1
 ORDER BY user_id, plan, anchor_at;
