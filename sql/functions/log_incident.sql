-- log_incident(resource, token, worker, kind, phase, xid, detail, ms_ago): journals an incident of a lock or of a COMMIT.
-- Rows that are parked or given back are journaled by the functions that do so, and by nothing else. An incident is at most a
-- week old: it waits while there is no connection.
CREATE OR REPLACE FUNCTION log_incident(
  p_resource text, p_token bigint, p_worker text, p_kind text, p_phase text, p_xid bigint, p_detail text, p_ms_ago bigint)
RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
#variable_conflict use_column
BEGIN
  IF p_kind IN ('parked', 'resumed') OR (p_ms_ago BETWEEN 0 AND 604800000) IS NOT TRUE THEN
    RAISE EXCEPTION 'no worker writes an incident "%" of % ms ago', p_kind, p_ms_ago USING ERRCODE = 'LL002';
  END IF;
  INSERT INTO lock_incidents (resource, token, worker, kind, phase, xid, detail, at)
  VALUES ($1::text, $2::bigint, $3::text, $4::text, $5::text, $6::bigint, $7::text,
          clock_timestamp() - $8::bigint * interval '1 millisecond');
END $$;
COMMENT ON FUNCTION log_incident IS
  'Journals an incident of a lock or of a COMMIT. Errors: LL002 bad argument.';
REVOKE ALL ON FUNCTION log_incident FROM PUBLIC;
GRANT EXECUTE ON FUNCTION log_incident TO ledgerlock_worker;
