-- Waits until no transaction that writes an entry of stock is under way; close-month ends its own at once, and with it the lock.
-- No parameters, no columns. Locks: SHARE on stock_entries.
LOCK TABLE stock_entries IN SHARE MODE
