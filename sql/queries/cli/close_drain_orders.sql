-- Waits until no transaction that writes an order is under way; close-month ends its own at once, and with it the lock.
-- No parameters, no columns. Locks: SHARE on orders.
LOCK TABLE orders IN SHARE MODE
