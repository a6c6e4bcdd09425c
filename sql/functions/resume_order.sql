-- resume_order(order): gives a parked order back to the workers, once what stopped it is mended.
-- Returns whether there was anything to resume.
CREATE OR REPLACE FUNCTION ledgerlock.resume_order(p_order_id bigint)
RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER SET search_path = ledgerlock, pg_temp AS $$
BEGIN
  UPDATE orders SET state = 'pending' WHERE order_id = p_order_id AND state = 'parked';
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  PERFORM announce_work();
  RETURN true;
END $$;
COMMENT ON FUNCTION ledgerlock.resume_order IS 'A parked order becomes pending again.';
REVOKE ALL ON FUNCTION ledgerlock.resume_order FROM PUBLIC;
GRANT EXECUTE ON FUNCTION ledgerlock.resume_order TO ledgerlock_client;
