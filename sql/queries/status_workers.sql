-- status_workers: workers that reported within the last ten seconds, at most 256. Locks: none.
-- Columns: pool, host, slot, pid, seen_ms ago, up_s since the pool started, then one per counter.
SELECT pool, host, slot, pid,
       (extract(epoch FROM clock_timestamp() - seen_at) * 1000)::int8 AS seen_ms,
       extract(epoch FROM clock_timestamp() - started_at)::int8 AS up_s,
       coalesce((counters ->> 'batches')::int8, 0) AS batches,
       coalesce((counters ->> 'charged')::int8, 0) AS charged,
       coalesce((counters ->> 'declined')::int8, 0) AS declined,
       coalesce((counters ->> 'fulfilled')::int8, 0) AS fulfilled,
       coalesce((counters ->> 'rejected')::int8, 0) AS rejected,
       coalesce((counters ->> 'granted')::int8, 0) AS granted,
       coalesce((counters ->> 'busy')::int8, 0) AS busy,
       coalesce((counters ->> 'lost')::int8, 0) AS lost,
       coalesce((counters ->> 'fenced')::int8, 0) AS fenced,
       coalesce((counters ->> 'uncertain')::int8, 0) AS uncertain,
       coalesce((counters ->> 'commit_unknown')::int8, 0) AS commit_unknown,
       coalesce((counters ->> 'restarts')::int8, 0) AS restarts
  FROM ledgerlock.workers
 WHERE seen_at > clock_timestamp() - interval '10 seconds'
 ORDER BY pool, slot
 LIMIT 256;
