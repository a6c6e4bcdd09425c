-- Every decided order was decided by a batch, and every batch of orders, or of payments for orders, has the decisions that it counted.
-- An order with an unknown SKU is rejected when it is placed; it carries no token.
WITH effect AS (
  SELECT fence AS token, decided_at AS at, count(*) FILTER (WHERE state = 'fulfilled') AS done,
         count(*) FILTER (WHERE state = 'rejected') AS refused
    FROM orders WHERE state IN ('fulfilled', 'rejected') AND fence <> 0 GROUP BY fence, decided_at
   UNION ALL
  SELECT token, at, -done, -refused FROM batches WHERE job IN ('orders', 'payments') AND periods IS NULL
)
SELECT format('batch %s at %s', token, coalesce(at::text, 'no time')) AS what,
       format('%s fulfilled and %s rejected more than the batch counted', sum(done), sum(refused)) AS detail
  FROM effect
 GROUP BY token, at
HAVING sum(done) <> 0 OR sum(refused) <> 0
 ORDER BY what;
