-- The fence of a user is never below that of the newest effect on the user's money.
SELECT format('user %s', u.user_id) AS what,
       format('fence %s, effect %s', u.fence, e.fence) AS detail
  FROM ledgerlock.users AS u
  JOIN (SELECT user_id, max(fence) AS fence
          FROM (SELECT user_id, fence FROM ledgerlock.charges WHERE state = 'captured'
                UNION ALL
                SELECT user_id, fence FROM ledgerlock.orders WHERE state = 'fulfilled') AS effect
         GROUP BY user_id) AS e USING (user_id)
 WHERE u.fence < e.fence
 ORDER BY u.user_id;
