-- The fence of a user is never below that of the newest effect on the user's money.
WITH behind AS MATERIALIZED (
  SELECT user_id, u.fence, e.fence AS effect
    FROM users AS u JOIN open_charges AS e USING (user_id)
   WHERE e.state = 'captured' AND u.fence < e.fence
   UNION ALL
  SELECT user_id, u.fence, e.fence
    FROM users AS u JOIN open_orders AS e USING (user_id)
   WHERE e.state = 'fulfilled' AND NOT e.by_card AND u.fence < e.fence)
SELECT format('user %s', user_id) AS what,
       format('fence %s, effect %s', fence, max(effect)) AS detail
  FROM behind
 GROUP BY user_id, fence
 ORDER BY user_id;
