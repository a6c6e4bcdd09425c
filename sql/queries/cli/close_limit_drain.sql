-- To the end of the transaction, no statement waits longer than half a second for a lock: whoever wants to write a table waits
-- behind close-month while it waits for those who write it already. No parameters, no columns. No lock.
SET LOCAL lock_timeout = '500ms'
