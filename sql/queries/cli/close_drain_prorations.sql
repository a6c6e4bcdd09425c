-- Waits until no transaction that writes a proration is under way; close-month ends its own at once, and with it the lock.
-- No parameters, no columns. Locks: SHARE on prorations.
LOCK TABLE prorations IN SHARE MODE
