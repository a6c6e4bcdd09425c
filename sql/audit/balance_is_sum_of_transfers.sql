-- The balance of every wallet is the sum of its transfers.
SELECT format('user %s', user_id) AS what,
       format('balance %s, transfers %s', coalesce(u.balance_minor::text, 'missing'),
              coalesce(t.net_minor, 0)) AS detail
  FROM ledgerlock.users AS u
  FULL JOIN (SELECT user_id,
                    sum(CASE WHEN credit = 'wallet' THEN amount_minor ELSE 0 END
                        - CASE WHEN debit = 'wallet' THEN amount_minor ELSE 0 END) AS net_minor
               FROM ledgerlock.transfers GROUP BY user_id) AS t USING (user_id)
 WHERE u.balance_minor IS DISTINCT FROM coalesce(t.net_minor, 0)
 ORDER BY user_id;
