-- Workers of the last pool. $1 bigint: since when it runs, in microseconds. Columns: how many. Locks: none.
SELECT count(*) FROM workers
 WHERE seen_at >= to_timestamp(0) + $1::bigint * interval '1 microsecond'
