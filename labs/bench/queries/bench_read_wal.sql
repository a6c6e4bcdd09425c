-- Write-ahead log of the whole server so far. Columns: bytes, full page images, flushes. Locks: none.
SELECT wal_bytes::bigint, wal_fpi::bigint, wal_sync::bigint FROM pg_stat_wal
