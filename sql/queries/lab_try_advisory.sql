-- Takes the advisory lock of a box. $1 bigint: box. Columns: bool. Locks: the advisory lock, until the end.
SELECT pg_try_advisory_xact_lock($1::bigint)
