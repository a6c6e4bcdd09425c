-- The fence of a user is never below that of the newest effect on the user's money.
SELECT format('user %s', user_id) AS what,
       format('fence %s, effect %s', u.fence, max(e.fence)) AS detail
  FROM ledgerlock.users AS u
  JOIN (SELECT user_id, fence FROM ledgerlock.charges WHERE state = 'captured'
        UNION ALL
        SELECT user_id, fence FROM ledgerlock.orders WHERE state = 'fulfilled') AS e USING (user_id)
 WHERE u.fence < e.fence
 GROUP BY user_id, u.fence
 ORDER BY user_id;
