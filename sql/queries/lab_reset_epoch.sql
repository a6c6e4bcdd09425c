-- A new cell has new Redis servers and new rows: its epochs begin again. Columns: none. Locks: the row.
UPDATE ledgerlock.lock_epoch SET epoch = 1
