-- Waits until no transaction that writes a return is under way; close-month ends its own at once, and with it the lock.
-- No parameters, no columns. Locks: SHARE on returns.
LOCK TABLE returns IN SHARE MODE
