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
  v_old   returns%ROWTYPE;
  v_new   returns%ROWTYPE;
  v_of    ledger%ROWTYPE;
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
  SELECT * INTO v_old FROM returns WHERE user_id = p_user_id AND idempotency_key = p_idempotency_key;
  IF FOUND THEN
    IF (v_old.order_id, v_old.sku_id, v_old.qty) IS DISTINCT FROM (p_order_id, v_stock.sku_id, p_qty) THEN
      RAISE EXCEPTION 'return "%" of user % was made for something else', p_idempotency_key, p_user_id
        USING ERRCODE = 'LL001', HINT = 'Use a new key for a new return.';
    END IF;
    RETURN v_old.refunded_minor;
  END IF;
  PERFORM check_time('the time of a return', p_at, interval '24 hours', interval '0');
  IF v_order.state <> 'fulfilled' THEN
    RAISE EXCEPTION 'order % is %, so no unit of it can come back', p_order_id, v_order.state USING ERRCODE = 'LL003';
  END IF;
  SELECT coalesce(sum(qty), 0) INTO v_new.sold_qty FROM order_lines WHERE order_id = p_order_id AND sku_id = v_stock.sku_id;
  SELECT coalesce(sum(qty), 0) INTO v_new.before_qty FROM returns WHERE order_id = p_order_id AND sku_id = v_stock.sku_id;
  IF p_qty > v_new.sold_qty - v_new.before_qty THEN
    RAISE EXCEPTION 'of SKU "%" in order % only % units can come back', p_sku, p_order_id, v_new.sold_qty - v_new.before_qty
      USING ERRCODE = 'LL003';
  ELSIF p_qty > 9223372036854775807 - v_stock.on_hand THEN
    RAISE EXCEPTION 'the quantity on hand would not fit into 64 bits' USING ERRCODE = 'LL002';
  END IF;
  v_new.cost_minor := cost_of_units(p_order_id, v_stock.sku_id, v_new.before_qty, p_qty);
  v_new.refunded_minor := 0;
  IF v_order.total_minor > 0 THEN
    SELECT * INTO v_of FROM paid_transfer(p_user_id, 'payment', p_order_id, 0);
    v_new.refunded_minor := least(v_new.cost_minor, refundable(v_of));
  END IF;
  INSERT INTO returns (user_id, idempotency_key, order_id, sku_id, qty, sold_qty, before_qty, cost_minor, refunded_minor, reason, at)
  VALUES (p_user_id, p_idempotency_key, p_order_id, v_stock.sku_id, p_qty, v_new.sold_qty, v_new.before_qty, v_new.cost_minor,
          v_new.refunded_minor, p_reason, p_at);
  UPDATE stock SET on_hand = on_hand + p_qty WHERE sku_id = v_stock.sku_id;
  IF v_new.refunded_minor > 0 THEN
    PERFORM correct(p_user_id, 'return', v_of, v_new.refunded_minor, p_reason, p_idempotency_key, p_at);
  END IF;
  RETURN v_new.refunded_minor;
END $$;
COMMENT ON FUNCTION return_units IS
  'Takes units of a fulfilled order back and refunds them; returns the refund. Errors: LL001 key used otherwise, LL002 bad argument, LL003 more than were sold.';
REVOKE ALL ON FUNCTION return_units FROM PUBLIC;
GRANT EXECUTE ON FUNCTION return_units TO ledgerlock_support;
