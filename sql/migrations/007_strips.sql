-- 007: what lies together is charged together, at any size.
--
-- The oldest 500 of the 31,000 subscriptions that one of 64 buckets holds when there are two million lie on as many
-- pages, each of which is read, written and, after a checkpoint, logged whole for one charge. A bucket is 16 strips
-- now, and a batch serves strip after strip, the one first whose oldest has waited longest.
ALTER TABLE ledgerlock.subscriptions DROP COLUMN bucket;
ALTER TABLE ledgerlock.subscriptions
  ADD COLUMN strip smallint GENERATED ALWAYS AS ((user_id / 32 % 1024)::smallint) STORED;
COMMENT ON COLUMN ledgerlock.subscriptions.strip IS
  'Runs of 32 users share one, and what is due in one is charged together. Bucket strip % 64 keeps workers apart: each walks the buckets from its own place. A hint, never a guarantee.';
CREATE INDEX subscriptions_due ON ledgerlock.subscriptions (strip, next_due_at)
  WHERE state IN ('active', 'past_due');
