-- Raises the epoch above itself and above the one given. Must be committed before it is used.
-- $1 bigint: an epoch that is known to be in use. Columns: the new epoch. Locks: the row.
UPDATE ledgerlock.lock_epoch SET epoch = greatest(epoch, $1::bigint) + 1 RETURNING epoch
