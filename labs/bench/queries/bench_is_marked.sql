-- True if this database may be wiped and filled for a measurement: its owner made the schema that says so.
-- Columns: bool. Locks: none.
SELECT to_regnamespace('ledgerlock_bench') IS NOT NULL
