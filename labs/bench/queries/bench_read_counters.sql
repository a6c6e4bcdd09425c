-- The sums of the counters of the workers of the last pool. $1 bigint: since when it runs, in microseconds.
-- Columns: counter, its sum. Locks: none.
SELECT key, sum(value::bigint)::bigint
  FROM workers, jsonb_each_text(counters)
 WHERE seen_at >= to_timestamp(0) + $1::bigint * interval '1 microsecond'
 GROUP BY key
 ORDER BY key
