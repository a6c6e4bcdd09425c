-- A new cell has new Redis servers and new rows: its epochs begin again. Columns: none.
ALTER SEQUENCE ledgerlock_lab.lab_epochs RESTART
