-- Batches for the limit: what is due, bucket by bucket and oldest first, as the pool pulls it; the rest that does
-- not fill a batch is left out. Prints how many. Variable: batch.
DROP TABLE IF EXISTS ledgerlock_bench.batches;
CREATE TABLE ledgerlock_bench.batches (batch_id bigint PRIMARY KEY, items bigint[] NOT NULL, users bigint[] NOT NULL);
ALTER TABLE ledgerlock_bench.batches ALTER items SET STORAGE EXTERNAL, ALTER users SET STORAGE EXTERNAL;
INSERT INTO ledgerlock_bench.batches
SELECT n / :batch + 1, array_agg(subscription_id ORDER BY n), array_agg(DISTINCT user_id)
  FROM (SELECT subscription_id, user_id, row_number() OVER (ORDER BY bucket, next_due_at) - 1 AS n
          FROM ledgerlock.subscriptions WHERE next_due_at <= now()) AS due
 GROUP BY n / :batch
HAVING count(*) = :batch;
VACUUM (ANALYZE) ledgerlock_bench.batches;
CHECKPOINT;
SELECT count(*) FROM ledgerlock_bench.batches;
