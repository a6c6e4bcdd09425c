-- Batches for the limit: what is due, bucket by bucket and strip by strip, as the pool pulls it; the rest that does
-- not fill a batch is left out. What the pull and the claim tell the pool stands in them as well: a user has one
-- subscription here, so both rows stay where they are until their only charge. Prints how many. Variable: batch.
DROP TABLE IF EXISTS ledgerlock_bench.batches;
CREATE TABLE ledgerlock_bench.batches (
  batch_id bigint PRIMARY KEY, items bigint[] NOT NULL, places tid[] NOT NULL, users bigint[] NOT NULL,
  payers bigint[] NOT NULL, wallets tid[] NOT NULL, balances bigint[] NOT NULL);
ALTER TABLE ledgerlock_bench.batches
  ALTER items SET STORAGE EXTERNAL, ALTER places SET STORAGE EXTERNAL, ALTER users SET STORAGE EXTERNAL,
  ALTER payers SET STORAGE EXTERNAL, ALTER wallets SET STORAGE EXTERNAL, ALTER balances SET STORAGE EXTERNAL;
INSERT INTO ledgerlock_bench.batches
SELECT n / :batch + 1, array_agg(subscription_id ORDER BY n), array_agg(place ORDER BY n), array_agg(DISTINCT user_id),
       array_agg(user_id ORDER BY n), array_agg(wallet ORDER BY n), array_agg(balance_minor ORDER BY n)
  FROM (SELECT s.subscription_id, s.ctid AS place, s.user_id, u.ctid AS wallet, u.balance_minor,
               row_number() OVER (ORDER BY s.strip % 64, s.strip, s.next_due_at) - 1 AS n
          FROM ledgerlock.subscriptions AS s JOIN ledgerlock.users AS u USING (user_id)
         WHERE s.next_due_at <= now()) AS due
 GROUP BY n / :batch
HAVING count(*) = :batch;
VACUUM (ANALYZE) ledgerlock_bench.batches;
CHECKPOINT;
SELECT count(*) FROM ledgerlock_bench.batches;
