-- No fence, nor the last token, is more than an hour ahead of the clock: a token is the time in microseconds.
-- A row with a higher one would refuse every worker until then.
WITH clock AS (
  SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + 3600000000 AS last
), beyond AS MATERIALIZED (
  SELECT 'user' AS kind, user_id::text AS name, fence
    FROM users
   WHERE fence NOT BETWEEN 0 AND (SELECT last FROM clock)
   UNION ALL
  SELECT 'sku', sku, fence
    FROM stock
   WHERE fence NOT BETWEEN 0 AND (SELECT last FROM clock)
   UNION ALL
  SELECT 'token', 'last', last
    FROM lock_token
   WHERE last NOT BETWEEN 0 AND (SELECT last FROM clock))
SELECT format('%s %s', kind, name) AS what,
       format('fence %s', fence) AS detail
  FROM beyond
 ORDER BY what;
