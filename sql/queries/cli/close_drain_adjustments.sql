-- Waits until no transaction that writes an adjustment is under way; close-month ends its own at once, and with it the lock.
-- No parameters, no columns. Locks: SHARE on adjustments.
LOCK TABLE adjustments IN SHARE MODE
