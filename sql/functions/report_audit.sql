-- report_audit(took_ms, invariants, broken): writes that a whole audit has ended now, and removes those that ended over
-- thirty days ago. broken is a JSON array of the names of the invariants that were broken, "[]" if none was.
CREATE OR REPLACE FUNCTION report_audit(p_took_ms bigint, p_invariants bigint, p_broken text)
RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
  IF p_broken IS NULL THEN
    RAISE EXCEPTION 'an audit says which invariants are broken, "[]" for none' USING ERRCODE = 'LL002';
  END IF;
  INSERT INTO audits (took_ms, invariants, broken)
  SELECT $1, $2, ARRAY(SELECT name FROM json_array_elements_text($3::json) AS b (name));
  DELETE FROM audits WHERE ended_at < clock_timestamp() - interval '30 days';
END $$;
COMMENT ON FUNCTION report_audit IS
  'Writes that a whole audit has ended, and removes those of over thirty days ago. Errors: LL002 bad argument.';
REVOKE ALL ON FUNCTION report_audit FROM PUBLIC;
GRANT EXECUTE ON FUNCTION report_audit TO ledgerlock_worker;
