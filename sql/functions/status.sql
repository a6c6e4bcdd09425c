-- status(now): what a person wants to see of the tables, in one reading; the newest sales and charges are those before `now` (null: the
-- clock). The backlog and the parked rows of each job are the job's own. A counter of a worker that is no number is left out. Reads without locks; check_newest and newest_sales bound what they read.
CREATE OR REPLACE FUNCTION status(p_now timestamptz DEFAULT NULL)
RETURNS jsonb LANGUAGE plpgsql STABLE SET search_path FROM CURRENT SET timezone = 'UTC' AS $$
DECLARE -- in a statement of its own, since Citus joins no views of the server with tables of a cell
  v_waits jsonb := (SELECT coalesce(jsonb_agg(to_jsonb(w) ORDER BY w.waits_ms DESC, w.pid), '[]')
    FROM (SELECT w.application_name, coalesce(h.application_name, '') AS holder, coalesce(h.state, '') AS state, w.pid,
                 coalesce(h.pid, 0) AS holder_pid,
                 coalesce(extract(epoch FROM clock_timestamp() - w.state_change) * 1000, 0)::bigint AS waits_ms
            FROM pg_stat_activity AS w
            CROSS JOIN LATERAL unnest(pg_blocking_pids(w.pid)) AS b (pid)
            LEFT JOIN pg_stat_activity AS h ON h.pid = b.pid
           WHERE w.datname = current_database() AND w.wait_event_type = 'Lock'
           ORDER BY w.state_change, w.pid LIMIT 32) AS w);
BEGIN
  RETURN jsonb_build_object(
    'now', to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
    'database', (SELECT current_schema() || ' of ' || current_database() || '@' || system_identifier FROM pg_control_system()),
    'newest', (SELECT jsonb_agg(to_jsonb(n)) FROM check_newest(p_now, 20) AS n),
    'stock', (SELECT coalesce(jsonb_agg(to_jsonb(s) ORDER BY s.sold DESC, s.sku), '[]') FROM newest_sales(p_now, 200) AS s),
    'audit', (SELECT jsonb_build_object('invariants', invariants, 'broken', broken, 'took_ms', took_ms,
                       'age_ms', (extract(epoch FROM clock_timestamp() - ended_at) * 1000)::bigint)
                FROM audits ORDER BY audit_id DESC LIMIT 1),
    'waits', v_waits,
    'paused', (SELECT coalesce(jsonb_agg(jsonb_build_object('job', job, 'since', to_char(since, 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
                                                            'by', paused_by, 'reason', reason) ORDER BY job), '[]')
                 FROM paused_jobs),
    'incidents', (SELECT coalesce(jsonb_agg(to_jsonb(i) ORDER BY i.incident_id DESC), '[]')
                    FROM (SELECT kind, resource, worker, phase, detail, incident_id, (extract(epoch FROM at) * 1000)::bigint AS at_ms
                            FROM lock_incidents ORDER BY incident_id DESC LIMIT 20) AS i),
    'workers', (SELECT coalesce(jsonb_agg(w.worker ORDER BY w.pool, w.slot), '[]')
                  FROM (SELECT pool, slot,
                               jsonb_build_object('pool', pool, 'host', host, 'job', job, 'slot', slot, 'pid', pid,
                                 'seen_ms', (extract(epoch FROM clock_timestamp() - seen_at) * 1000)::bigint,
                                 'up_s', extract(epoch FROM clock_timestamp() - started_at)::bigint)
                                 || CASE jsonb_typeof(counters) WHEN 'object' THEN counters ELSE '{}' END AS worker
                          FROM live_workers ORDER BY pool, slot LIMIT 256) AS w),
    'counted', (SELECT coalesce(jsonb_object_agg(j.job, j.sums), '{}')
                  FROM (SELECT job, jsonb_object_agg(counter, n) AS sums
                          FROM (SELECT w.job, c.key AS counter, least(sum(c.value::numeric), 9007199254740992)::bigint AS n
                                  FROM workers AS w, jsonb_each(CASE jsonb_typeof(w.counters) WHEN 'object' THEN w.counters ELSE '{}' END) AS c
                                 WHERE jsonb_typeof(c.value) = 'number' GROUP BY w.job, c.key) AS one
                         GROUP BY job) AS j),
    'working', (SELECT coalesce(jsonb_object_agg(j.job, j.n), '{}') FROM (SELECT job, count(*) AS n FROM live_workers GROUP BY job) AS j));
END $$;
COMMENT ON FUNCTION status IS
  'What the program shows of the tables: verdict of the newest rows, last audit, stock, waits, pauses, incidents, workers and the sums of their counters. Errors: none of its own.';
REVOKE ALL ON FUNCTION status FROM PUBLIC;
GRANT EXECUTE ON FUNCTION status TO ledgerlock_worker, ledgerlock_support, ledgerlock_reader;
