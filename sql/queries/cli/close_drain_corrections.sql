-- Waits until no transaction that writes a correction is under way; close-month ends its own at once, and with it the lock.
-- No parameters, no columns. Locks: SHARE on corrections.
LOCK TABLE corrections IN SHARE MODE
