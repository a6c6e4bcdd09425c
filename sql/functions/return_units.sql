-- return_units(user, order, sku, qty, reason, key, at): takes units of a fulfilled order back into stock, and gives back what they
-- cost, once per (user, key). Of a SKU at two prices the dearer units come back first; nothing goes beyond what is left of the
-- payment after earlier refunds. `at` is at most a day before now() and not after it.
-- Returns what was given back. The same key for something else is an error (SQLSTATE LL001).
CREATE OR REPLACE FUNCTION return_units(
  p_user_id bigint, p_order_id bigint, p_sku text, p_qty bigint, p_reason text, p_idempotency_key text,
  p_at timestamptz DEFAULT now())
RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  v_order orders%ROWTYPE;
  v_stock stock%ROWTYPE;
  v_old   stock_entries%ROWTYPE;
  v_sold  bigint;
  v_back  bigint; -- units of the SKU that came back earlier
BEGIN
  PERFORM check_correction(p_idempotency_key, p_reason);
  IF p_qty IS NULL OR p_qty <= 0 THEN
    RAISE EXCEPTION 'a return must be above zero' USING ERRCODE = 'LL002';
  END IF;
  PERFORM FROM users WHERE user_id = p_user_id FOR NO KEY UPDATE; -- users before stock, as everybody
  SELECT * INTO v_order FROM orders WHERE order_id = p_order_id AND user_id = p_user_id;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'user % has no order %', p_user_id, p_order_id USING ERRCODE = 'LL002';
  END IF;
  SELECT * INTO v_stock FROM stock WHERE sku = p_sku FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'SKU "%" does not exist', p_sku USING ERRCODE = 'LL002';
  END IF;
  SELECT * INTO v_old FROM stock_entries WHERE user_id = p_user_id AND kind = 'return' AND idempotency_key = p_idempotency_key;
  IF FOUND THEN
    IF (v_old.order_id, v_old.sku_id, v_old.qty) IS DISTINCT FROM (p_order_id, v_stock.sku_id, p_qty) THEN
      RAISE EXCEPTION 'return "%" of user % was made for something else', p_idempotency_key, p_user_id
        USING ERRCODE = 'LL001', HINT = 'Use a new key for a new return.';
    END IF;
    RETURN coalesce((SELECT amount_minor FROM wallet_entries
                      WHERE (user_id, kind, idempotency_key) = (p_user_id, 'return', p_idempotency_key)), 0);
  END IF;
  PERFORM check_time('the time of a return', p_at, interval '24 hours', interval '0');
  IF v_order.state <> 'fulfilled' THEN
    RAISE EXCEPTION 'order % is %, so no unit of it can come back', p_order_id, v_order.state USING ERRCODE = 'LL003';
  END IF;
  SELECT coalesce(sum(qty), 0) INTO v_sold FROM order_lines WHERE order_id = p_order_id AND sku_id = v_stock.sku_id;
  SELECT coalesce(sum(qty), 0) INTO v_back FROM stock_entries
   WHERE order_id = p_order_id AND sku_id = v_stock.sku_id AND kind = 'return';
  IF p_qty > v_sold - v_back THEN
    RAISE EXCEPTION 'of SKU "%" in order % only % units can come back', p_sku, p_order_id, v_sold - v_back USING ERRCODE = 'LL003';
  ELSIF p_qty > 9223372036854775807 - v_stock.on_hand THEN
    RAISE EXCEPTION 'the quantity on hand would not fit into 64 bits' USING ERRCODE = 'LL002';
  END IF;
  INSERT INTO stock_entries (sku_id, kind, idempotency_key, qty, user_id, order_id, sold_qty, before_qty, reason, at)
  VALUES (v_stock.sku_id, 'return', p_idempotency_key, p_qty, p_user_id, p_order_id, v_sold, v_back, p_reason, p_at);
  UPDATE stock SET on_hand = on_hand + p_qty WHERE sku_id = v_stock.sku_id;
  IF v_order.total_minor = 0 THEN
    RETURN 0;
  END IF;
  RETURN give_back(p_user_id, 'return', 'payment', p_order_id, 0, cost_of_units(p_order_id, v_stock.sku_id, v_back, p_qty), p_reason,
                   p_idempotency_key, p_at);
END $$;
COMMENT ON FUNCTION return_units IS
  'Takes units of a fulfilled order back and refunds them; returns the refund. Errors: LL001 key used otherwise, LL002 bad argument, LL003 more than were sold.';
REVOKE ALL ON FUNCTION return_units FROM PUBLIC;
GRANT EXECUTE ON FUNCTION return_units TO ledgerlock_support;
