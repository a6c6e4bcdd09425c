-- Every fence is the token of a batch, or 0 where no batch has written yet.
-- A higher one, planted, would keep every worker away from the row until the tokens have caught up.
WITH token AS (SELECT DISTINCT token FROM batches),
strange AS MATERIALIZED (
  SELECT 'user' AS kind, user_id AS id, fence FROM users
   WHERE fence <> 0 AND NOT EXISTS (SELECT FROM token WHERE token = fence)
   UNION ALL
  SELECT 'sku', sku_id, fence FROM stock
   WHERE fence <> 0 AND NOT EXISTS (SELECT FROM token WHERE token = fence))
SELECT format('%s %s', kind, id) AS what, format('fence %s', fence) AS detail
  FROM strange
 ORDER BY kind, id;
