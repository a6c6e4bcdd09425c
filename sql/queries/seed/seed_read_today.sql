-- Midnight in UTC by the database's clock. Columns: microseconds since 1970 bigint. Locks: none.
SELECT (extract(epoch FROM date_trunc('day', now(), 'UTC')) * 1000000)::bigint
