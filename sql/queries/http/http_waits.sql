-- Sessions of this database that wait for a row or a table that another session has locked, at most 32. Locks: none.
-- Columns: application (text), holder (text), holder's state (text), pid, holder_pid, waits_ms.
SELECT w.application_name, coalesce(h.application_name, '') AS holder, coalesce(h.state, '') AS state, w.pid::bigint AS pid,
       coalesce(h.pid, 0)::bigint AS holder_pid,
       coalesce(extract(epoch FROM clock_timestamp() - w.state_change) * 1000, 0)::bigint AS waits_ms
  FROM pg_stat_activity AS w
  CROSS JOIN LATERAL unnest(pg_blocking_pids(w.pid)) AS b (pid)
  LEFT JOIN pg_stat_activity AS h ON h.pid = b.pid
 WHERE w.datname = current_database() AND w.wait_event_type = 'Lock'
 ORDER BY w.state_change, w.pid LIMIT 32
