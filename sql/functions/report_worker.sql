-- report_worker(pool, slot, job, host, pid, counters): writes the counters of the worker in a slot of a pool.
CREATE OR REPLACE FUNCTION report_worker(
  p_pool text, p_slot integer, p_job text, p_host text, p_pid integer, p_counters jsonb)
RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
#variable_conflict use_column
DECLARE
  v_now timestamptz := now();
BEGIN
  INSERT INTO workers AS w (pool, slot, job, host, pid, started_at, seen_at, counters)
  VALUES ($1, $2, $3, $4, $5, v_now, v_now, $6)
  ON CONFLICT (pool, slot) DO UPDATE
     SET seen_at = v_now, counters = excluded.counters,
         started_at = CASE WHEN w.pid = excluded.pid THEN w.started_at ELSE v_now END,
         job = excluded.job, host = excluded.host, pid = excluded.pid;
END $$;
COMMENT ON FUNCTION report_worker IS
  'Writes the counters of the worker in a slot of a pool.';
REVOKE ALL ON FUNCTION report_worker FROM PUBLIC;
GRANT EXECUTE ON FUNCTION report_worker TO ledgerlock_worker;
