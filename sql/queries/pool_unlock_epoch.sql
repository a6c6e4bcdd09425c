-- The other half of pool_lock_epoch. Columns: none.
SELECT pg_advisory_unlock(7810482634)
