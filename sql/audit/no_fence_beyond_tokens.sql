-- Every fence, and the last token, is one that a later token can pass: far below 2^53, where tokens end.
-- A row with a higher one would refuse every worker for ever.
WITH beyond AS MATERIALIZED (
  SELECT 'user' AS kind, user_id::text AS name, fence
    FROM users
   WHERE fence NOT BETWEEN 0 AND 9006099743113215
   UNION ALL
  SELECT 'sku', sku, fence
    FROM stock
   WHERE fence NOT BETWEEN 0 AND 9006099743113215
   UNION ALL
  SELECT 'token', 'last', last
    FROM lock_token
   WHERE last NOT BETWEEN 0 AND 9006099743113215)
SELECT format('%s %s', kind, name) AS what,
       format('fence %s', fence) AS detail
  FROM beyond
 ORDER BY what;
