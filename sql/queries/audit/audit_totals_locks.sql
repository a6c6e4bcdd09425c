-- audit_totals_locks: what all workers of all pools have counted, one row, one column per counter.
-- A counter that no worker has is 0. Locks: none.
SELECT coalesce(sum((counters ->> 'granted')::int8), 0)::int8 AS granted,
       coalesce(sum((counters ->> 'busy')::int8), 0)::int8 AS busy,
       coalesce(sum((counters ->> 'row_locked')::int8), 0)::int8 AS row_locked,
       coalesce(sum((counters ->> 'lost')::int8), 0)::int8 AS lost,
       coalesce(sum((counters ->> 'fenced')::int8), 0)::int8 AS fenced,
       coalesce(sum((counters ->> 'uncertain')::int8), 0)::int8 AS uncertain,
       coalesce(sum((counters ->> 'commit_unknown')::int8), 0)::int8 AS commit_unknown,
       coalesce(sum((counters ->> 'batches')::int8), 0)::int8 AS batches,
       coalesce(sum((counters ->> 'restarts')::int8), 0)::int8 AS restarts
  FROM workers;
