-- 004: the turn to raise the epoch stands in its row, not in a session: it spans several transactions, and behind
-- a pooler each of them may have a session of its own.
ALTER TABLE ledgerlock.lock_epoch ADD COLUMN raiser text, ADD COLUMN raiser_until timestamptz;
COMMENT ON COLUMN ledgerlock.lock_epoch.raiser IS 'The worker whose turn it is to raise and install an epoch.';
COMMENT ON COLUMN ledgerlock.lock_epoch.raiser_until IS 'When others may take the turn: the worker has died in it.';
GRANT UPDATE (raiser, raiser_until) ON ledgerlock.lock_epoch TO ledgerlock_worker;
