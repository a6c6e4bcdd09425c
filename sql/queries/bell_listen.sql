-- The listener of a pool is told when a door has made work due while a pool sleeps. Columns: none. Locks: none.
LISTEN ledgerlock_due
