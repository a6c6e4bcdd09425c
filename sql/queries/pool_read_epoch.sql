-- The epoch in force. Columns: epoch. Locks: none.
SELECT epoch FROM ledgerlock.lock_epoch
