-- To the end of the transaction, no statement waits longer than two seconds for a lock. Unlike a SELECT, this takes no
-- snapshot, so that the lock on the month comes before it. No parameters, no columns. No lock.
SET LOCAL lock_timeout = '2s'
