-- Takes the advisory lock of an item. $1 bigint: item. Columns: bool. Locks: the advisory lock, until the end.
SELECT pg_try_advisory_xact_lock($1::bigint)
