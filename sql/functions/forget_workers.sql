-- forget_workers(): removes the counters of old pools: rows of workers that no worker has written for a day.
-- Every pool calls it once at its start; workers may delete nothing else. Returns the number of rows.
CREATE OR REPLACE FUNCTION forget_workers()
RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  v_gone bigint;
BEGIN
  DELETE FROM workers WHERE seen_at < now() - interval '1 day';
  GET DIAGNOSTICS v_gone = ROW_COUNT;
  RETURN v_gone;
END $$;
COMMENT ON FUNCTION forget_workers IS
  'Removes workers that have not reported for a day.';
REVOKE ALL ON FUNCTION forget_workers FROM PUBLIC;
GRANT EXECUTE ON FUNCTION forget_workers TO ledgerlock_worker;
