-- The other half of pool_lock_epoch. $1 text: worker. Columns: none. Locks: the row.
UPDATE ledgerlock.lock_epoch SET raiser = NULL, raiser_until = NULL WHERE raiser = $1::text
