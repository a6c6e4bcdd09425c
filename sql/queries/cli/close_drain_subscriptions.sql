-- Waits until no transaction that writes a subscription is under way; close-month ends its own at once, and with it the lock.
-- No parameters, no columns. Locks: SHARE on subscriptions.
LOCK TABLE subscriptions IN SHARE MODE
