-- cancel_order(user, order): takes back an order that no worker has decided, and of which no gateway was asked. A worker that serves it at
-- this moment is waited for. Returns true, and false when it was cancelled before. An order that is decided is an error (SQLSTATE LL003).
CREATE OR REPLACE FUNCTION cancel_order(p_user_id bigint, p_order_id bigint)
RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  v_state   text;
  v_feed_no bigint;
BEGIN
  PERFORM FROM users WHERE user_id = p_user_id FOR NO KEY UPDATE; -- as a worker that claims the order
  SELECT state INTO v_state FROM orders WHERE order_id = p_order_id AND user_id = p_user_id FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'user % has no order %', p_user_id, p_order_id USING ERRCODE = 'LL002';
  END IF;
  IF v_state = 'cancelled' THEN
    RETURN false;
  ELSIF v_state = 'paying' THEN -- money may be on its way, unless nobody was asked for it yet
    PERFORM FROM stock WHERE sku_id IN (SELECT sku_id FROM order_lines WHERE order_id = p_order_id) ORDER BY sku_id FOR NO KEY UPDATE;
    UPDATE payments SET state = 'void', reason = 'the order was cancelled', worker = session_user
     WHERE (source, kind, leg) = (p_order_id, 'payment', 0) AND state = 'planned';
    IF NOT FOUND THEN
      RAISE EXCEPTION 'a payment by card for order % is not decided', p_order_id
        USING ERRCODE = 'LL003', HINT = 'See ledgerlock explain order:' || p_order_id;
    END IF;
    PERFORM release_holds(ARRAY[p_order_id], NULL);
  ELSIF v_state NOT IN ('pending', 'parked') THEN
    RAISE EXCEPTION 'order % is %', p_order_id, v_state
      USING ERRCODE = 'LL003', HINT = CASE v_state WHEN 'fulfilled' THEN 'Its units can be returned: return_units.' ELSE '' END;
  END IF;
  UPDATE orders SET state = 'cancelled' WHERE order_id = p_order_id;
  v_feed_no := next_feed_no(); -- after a write: check_home
  INSERT INTO events (order_id, event, state, user_id, worker, feed_no)
  VALUES (p_order_id, 'cancelled', 'cancelled', p_user_id, session_user, v_feed_no);
  RETURN true;
END $$;
COMMENT ON FUNCTION cancel_order IS
  'Takes back an order that is not decided; false: it was cancelled before. Errors: LL002 no such order of this user, LL003 it is decided, or its card is asked.';
REVOKE ALL ON FUNCTION cancel_order FROM PUBLIC;
GRANT EXECUTE ON FUNCTION cancel_order TO ledgerlock_shop, ledgerlock_support;
