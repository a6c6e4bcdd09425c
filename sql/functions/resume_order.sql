-- resume_order(user, order): gives a parked order back to the workers, once its cause is repaired.
-- Returns true if the order was parked.
CREATE OR REPLACE FUNCTION resume_order(p_user_id bigint, p_order_id bigint)
RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM orders WHERE order_id = p_order_id AND user_id = p_user_id) THEN
    RAISE EXCEPTION 'user % has no order %', p_user_id, p_order_id USING ERRCODE = 'LL002';
  END IF;
  WITH given AS (
    UPDATE orders SET state = 'pending' WHERE order_id = p_order_id AND state = 'parked'
    RETURNING *
  )
  INSERT INTO events (order_id, event, state, user_id)
  SELECT order_id, 'released', state, user_id FROM given;
  RETURN FOUND;
END $$;
COMMENT ON FUNCTION resume_order IS
  'A parked order becomes pending again. Errors: LL002 the user has no such order.';
REVOKE ALL ON FUNCTION resume_order FROM PUBLIC;
GRANT EXECUTE ON FUNCTION resume_order TO ledgerlock_support;
