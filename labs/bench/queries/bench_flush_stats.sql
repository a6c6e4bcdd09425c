-- Lets what this session has done be seen in pg_stat_wal before its next statement. Columns: void. Locks: none.
SELECT pg_stat_force_next_flush()::text
