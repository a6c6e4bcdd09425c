-- resume_job(job): the pools work a paused job again. Returns true, and false when it was not paused.
CREATE OR REPLACE FUNCTION resume_job(p_job text)
RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
  DELETE FROM paused_jobs WHERE job = p_job;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  INSERT INTO events (event, job) VALUES ('resumed', p_job);
  RETURN true;
END $$;
COMMENT ON FUNCTION resume_job IS 'The pools work a paused job again; false: it was not paused.';
REVOKE ALL ON FUNCTION resume_job FROM PUBLIC;
GRANT EXECUTE ON FUNCTION resume_job TO ledgerlock_support;
