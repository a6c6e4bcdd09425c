-- Batches for the limit: what is due, shard by shard, as the pool pulls it; the rest that does
-- not fill a batch is left out. The places that the pull gives the pool stand in them as well: a user has one
-- subscription here, so its row stays where it is until its only charge. Prints how many. Variable: batch.
DROP TABLE IF EXISTS ledgerlock_bench.batches;
CREATE TABLE ledgerlock_bench.batches (
  batch_id bigint PRIMARY KEY, items bigint[] NOT NULL, places tid[] NOT NULL, users bigint[] NOT NULL,
  payers bigint[] NOT NULL);
ALTER TABLE ledgerlock_bench.batches
  ALTER items SET STORAGE EXTERNAL, ALTER places SET STORAGE EXTERNAL, ALTER users SET STORAGE EXTERNAL,
  ALTER payers SET STORAGE EXTERNAL;
INSERT INTO ledgerlock_bench.batches
SELECT n / :batch + 1, array_agg(subscription_id ORDER BY n), array_agg(place ORDER BY n), array_agg(DISTINCT user_id),
       array_agg(user_id ORDER BY n)
  FROM (SELECT subscription_id, ctid AS place, user_id, row_number() OVER (ORDER BY user_id / 32 % 1024, next_due_at) - 1 AS n
          FROM ledgerlock.subscriptions
         WHERE next_due_at <= now()) AS due
 GROUP BY n / :batch
HAVING count(*) = :batch;
VACUUM (ANALYZE) ledgerlock_bench.batches;
CHECKPOINT;
SELECT count(*) FROM ledgerlock_bench.batches;
