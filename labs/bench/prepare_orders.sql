-- Batches for the limit: pending orders in the order they were placed, as the pool pulls them; the rest that
-- does not fill a batch is left out. Prints how many. Variable: batch.
DROP TABLE IF EXISTS ledgerlock_bench.batches;
CREATE TABLE ledgerlock_bench.batches (
  batch_id bigint PRIMARY KEY, items bigint[] NOT NULL, users bigint[] NOT NULL, skus bigint[] NOT NULL);
ALTER TABLE ledgerlock_bench.batches
  ALTER items SET STORAGE EXTERNAL, ALTER users SET STORAGE EXTERNAL, ALTER skus SET STORAGE EXTERNAL;
INSERT INTO ledgerlock_bench.batches
SELECT batch_id, (SELECT array_agg(DISTINCT i) FROM unnest(array_agg(order_id)) AS i),
       array_agg(DISTINCT user_id), array_agg(DISTINCT sku_id)
  FROM (SELECT order_id, user_id, (row_number() OVER (ORDER BY placed_at, order_id) - 1) / :batch + 1 AS batch_id
          FROM ledgerlock.orders
         WHERE state = 'pending') AS pending
  JOIN ledgerlock.order_lines USING (order_id)
 GROUP BY batch_id
HAVING count(DISTINCT order_id) = :batch;
VACUUM (ANALYZE) ledgerlock_bench.batches;
CHECKPOINT;
SELECT count(*) FROM ledgerlock_bench.batches;
