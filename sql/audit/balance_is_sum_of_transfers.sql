-- The balance of every wallet is the sum of its transfers.
-- Sorted first, since so many groups are found faster in order than in a hash table that no cache holds.
WITH moved AS (
  SELECT user_id, CASE WHEN credit = 'wallet' THEN amount_minor ELSE 0 END
                  - CASE WHEN debit = 'wallet' THEN amount_minor ELSE 0 END AS net_minor
    FROM ledgerlock.transfers
   ORDER BY user_id OFFSET 0
), net AS (
  SELECT user_id, sum(net_minor) AS net_minor FROM moved GROUP BY user_id
), wrong AS MATERIALIZED (
  SELECT user_id, balance_minor, net_minor
    FROM ledgerlock.users FULL JOIN net USING (user_id)
   WHERE balance_minor IS DISTINCT FROM coalesce(net_minor, 0))
SELECT format('user %s', user_id) AS what,
       format('balance %s, transfers %s', coalesce(balance_minor::text, 'missing'), coalesce(net_minor, 0)) AS detail
  FROM wrong
 ORDER BY user_id;
