-- status_workers: workers that reported within the last ten seconds, at most 256. Locks: none.
-- Column: a JSON array of {pool, host, job, slot, pid, seen_ms ago, up_s since the pool started, and each counter}.
SELECT coalesce(json_agg(worker ORDER BY pool, slot), '[]')::text
  FROM (SELECT pool, slot,
               jsonb_build_object('pool', pool, 'host', host, 'job', job, 'slot', slot, 'pid', pid,
                 'seen_ms', (extract(epoch FROM clock_timestamp() - seen_at) * 1000)::int8,
                 'up_s', extract(epoch FROM clock_timestamp() - started_at)::int8) || counters AS worker
          FROM live_workers
         ORDER BY pool, slot
         LIMIT 256) AS seen;
