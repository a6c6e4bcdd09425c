-- Every charge and every decline was made by a batch, and every batch of billing and payments has the effects that it counted.
-- Of closed months, sealed_batches has what batches of later months captured. So no charge is deleted, dated otherwise, or given to another batch or worker unseen.
WITH effect AS (
  SELECT fence AS token, charged_at AS at, worker, count(*) AS done, 0::int8 AS refused
    FROM open_charges WHERE state IN ('captured', 'paid') GROUP BY fence, charged_at, worker
   UNION ALL
  SELECT token, at, worker, 0, count(*)
    FROM events
   WHERE event = 'declined' AND at >= (SELECT first_open()) GROUP BY token, at, worker
   UNION ALL
  SELECT token, at, worker, done, 0 FROM sealed_batches
   UNION ALL
  SELECT token, at, worker, -done, -refused FROM batches
   WHERE job IN ('billing', 'payments') AND periods IS NOT NULL AND at >= (SELECT first_open())
)
SELECT format('batch %s of %s at %s', token, worker, at) AS what,
       format('%s captured and %s declined more than the batch counted', sum(done), sum(refused)) AS detail
  FROM effect
 GROUP BY token, at, worker
HAVING sum(done) <> 0 OR sum(refused) <> 0
 ORDER BY what;
