-- The balance of every wallet is the sum of its entries of ledger.
-- Entries of closed months are summed up in sealed_wallets.
-- The entries are sorted first: so many groups are found faster in order than in a hash table larger than the cache.
-- Amounts that fit into 32 bits are summed apart, as bigint; the sum of a bigint is numeric and slower.
WITH moved AS (
  SELECT user_id, CASE WHEN credit = 'wallet' THEN amount_minor ELSE 0 END
                  - CASE WHEN debit = 'wallet' THEN amount_minor ELSE 0 END AS minor
    FROM open_ledger
   ORDER BY user_id OFFSET 0
), net AS (
  SELECT user_id, sum(minor::int4) FILTER (WHERE minor BETWEEN -2147483648 AND 2147483647) AS minor,
         sum(minor) FILTER (WHERE minor NOT BETWEEN -2147483648 AND 2147483647) AS huge_minor
    FROM moved GROUP BY user_id
), wrong AS MATERIALIZED (
  SELECT user_id, balance_minor, coalesce(minor, 0) + coalesce(huge_minor, 0) + coalesce(s.net_minor, 0) AS net_minor
    FROM users FULL JOIN net USING (user_id) FULL JOIN sealed_wallets AS s USING (user_id)
   WHERE CASE WHEN s.net_minor IS NULL THEN balance_minor IS DISTINCT FROM coalesce(minor, 0)
              ELSE balance_minor IS DISTINCT FROM coalesce(minor, 0) + s.net_minor END
      OR huge_minor IS NOT NULL)
SELECT format('user %s', user_id) AS what,
       format('balance %s, ledger %s', coalesce(balance_minor::text, 'missing'), net_minor) AS detail
  FROM wrong
 WHERE balance_minor IS DISTINCT FROM net_minor
 ORDER BY user_id;
