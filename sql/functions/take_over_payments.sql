-- take_over_payments(slot, worker): the calls of workers that were in a slot of a pool before this one, and died, are unknown, and due.
-- slot is the beginning of their names, with the dot behind it. Returns how many they are.
CREATE OR REPLACE FUNCTION take_over_payments(p_slot text, p_worker text)
RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  v_now timestamptz := now();
  v_n   bigint;
BEGIN
  UPDATE payments SET state = 'unknown', reason = 'its worker died', due_at = v_now, worker = p_worker
   WHERE state = 'sent' AND starts_with(worker, p_slot) AND worker <> p_worker;
  GET DIAGNOSTICS v_n = ROW_COUNT;
  RETURN v_n;
END $$;
COMMENT ON FUNCTION take_over_payments IS 'The calls of dead workers of a slot are unknown, and due. Returns how many they are. Errors: none of its own.';
REVOKE ALL ON FUNCTION take_over_payments FROM PUBLIC;
GRANT EXECUTE ON FUNCTION take_over_payments TO ledgerlock_worker;
