-- Waits until no transaction that writes an entry of the ledgers is under way; close-month ends its own at once, and with it the locks.
-- No parameters, no columns. Locks: SHARE on the tables of what client functions book.
LOCK TABLE deposits, corrections, prorations, deliveries, adjustments, returns IN SHARE MODE
