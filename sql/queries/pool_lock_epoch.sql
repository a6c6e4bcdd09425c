-- One at a time raises and installs an epoch, so that a loss in Redis raises it once, not once a worker.
-- Columns: none. Locks: the advisory lock of the epoch, until pool_unlock_epoch or the end of the session.
SELECT pg_advisory_lock(7810482634)
