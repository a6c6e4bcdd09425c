-- release_orders(ids): a person gives parked orders back to the workers. Returns the ids
-- that were parked; each is journaled in lock_incidents.
CREATE OR REPLACE FUNCTION release_orders(p_ids bigint[])
RETURNS SETOF bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  v_user_id bigint;
  v_id      bigint;
BEGIN
  FOR v_user_id, v_id IN SELECT user_id, order_id FROM orders WHERE order_id = ANY (p_ids) AND state = 'parked' ORDER BY order_id LOOP
    CONTINUE WHEN NOT resume_order(v_user_id, v_id);
    INSERT INTO lock_incidents (resource, token, worker, kind, phase, detail)
    VALUES ('order:' || v_id, 0, 'operator', 'resumed', 'hand', 'ledgerlock parked release');
    RETURN NEXT v_id;
  END LOOP;
END $$;
COMMENT ON FUNCTION release_orders IS 'Gives parked orders back to the workers, and journals it.';
REVOKE ALL ON FUNCTION release_orders FROM PUBLIC;
GRANT EXECUTE ON FUNCTION release_orders TO ledgerlock_support;
