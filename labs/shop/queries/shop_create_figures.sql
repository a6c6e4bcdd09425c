-- The one row of the figures, if it is not there. Columns: none. Locks: the row.
INSERT INTO ledgerlock_plain.figures
SELECT 0, 0, 0, 0, 1, clock_timestamp() WHERE NOT EXISTS (SELECT FROM ledgerlock_plain.figures)
