-- Waits until no transaction that writes an entry of a wallet is under way; close-month ends its own at once, and with it the lock.
-- No parameters, no columns. Locks: SHARE on wallet_entries.
LOCK TABLE wallet_entries IN SHARE MODE
