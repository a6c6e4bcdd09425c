-- Waits until no transaction that writes a deposit is under way; close-month ends its own at once, and with it the lock.
-- No parameters, no columns. Locks: SHARE on deposits.
LOCK TABLE deposits IN SHARE MODE
