-- forget_workers(): removes what workers of old pools have counted: rows that nobody has written for a day.
-- Every pool calls it once as it starts; workers may delete nothing else. Returns how many.
CREATE OR REPLACE FUNCTION ledgerlock.forget_workers()
RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path = ledgerlock, pg_temp AS $$
DECLARE
  v_gone bigint;
BEGIN
  DELETE FROM workers WHERE seen_at < now() - interval '1 day';
  GET DIAGNOSTICS v_gone = ROW_COUNT;
  RETURN v_gone;
END $$;
COMMENT ON FUNCTION ledgerlock.forget_workers IS
  'Removes workers that have not reported for a day.';
REVOKE ALL ON FUNCTION ledgerlock.forget_workers FROM PUBLIC;
GRANT EXECUTE ON FUNCTION ledgerlock.forget_workers TO ledgerlock_worker;
