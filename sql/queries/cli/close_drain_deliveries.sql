-- Waits until no transaction that writes a delivery is under way; close-month ends its own at once, and with it the lock.
-- No parameters, no columns. Locks: SHARE on deliveries.
LOCK TABLE deliveries IN SHARE MODE
