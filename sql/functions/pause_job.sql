-- pause_job(job, reason): from now on no pool on this database pulls rows of the job, until resume_job. A batch that is in flight
-- ends as usual. Returns true, and false when the job was paused before: then reason and time stay those of the first call.
CREATE OR REPLACE FUNCTION pause_job(p_job text, p_reason text DEFAULT '')
RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
  IF (p_job ~ '^[a-z][a-z0-9_]*$') IS NOT TRUE THEN
    RAISE EXCEPTION 'a job has a name of small letters' USING ERRCODE = 'LL002';
  END IF;
  INSERT INTO paused_jobs (job, reason) VALUES (p_job, coalesce(p_reason, '')) ON CONFLICT DO NOTHING;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  INSERT INTO events (event, job, reason) VALUES ('paused', p_job, coalesce(p_reason, ''));
  RETURN true;
END $$;
COMMENT ON FUNCTION pause_job IS
  'No pool works the job until resume_job; false: it was paused before. Errors: LL002 bad argument.';
REVOKE ALL ON FUNCTION pause_job FROM PUBLIC;
GRANT EXECUTE ON FUNCTION pause_job TO ledgerlock_support;
