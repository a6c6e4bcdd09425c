-- adjust_stock(sku, qty, reason, key, at, cell): counts units in or out that no order and no delivery moved: damaged, lost, found; with
-- a cell, units that go to it (below zero) or came from it, as `ledgerlock move-stock` moves them. Once per (SKU, key); below zero takes units away, never more than are on hand and not held. `at` is at most a day before now() and not
-- after it. Returns the quantity on hand afterwards. The same key with another quantity or cell is an error (SQLSTATE LL001).
CREATE OR REPLACE FUNCTION adjust_stock(
  p_sku text, p_qty bigint, p_reason text, p_idempotency_key text, p_at timestamptz DEFAULT now(), p_cell integer DEFAULT NULL)
RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  v_stock stock%ROWTYPE;
  v_qty   bigint;
  v_cell  integer;
BEGIN
  PERFORM check_correction(p_idempotency_key, p_reason);
  IF p_cell NOT BETWEEN 0 AND 8191 THEN
    RAISE EXCEPTION 'a cell is a number from 0 to 8191' USING ERRCODE = 'LL002';
  ELSIF p_qty IS NULL OR p_qty = 0 THEN
    RAISE EXCEPTION 'an adjustment must be above or below zero' USING ERRCODE = 'LL002';
  END IF;
  SELECT * INTO v_stock FROM stock WHERE sku = p_sku FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'SKU "%" does not exist', p_sku USING ERRCODE = 'LL002';
  END IF;
  SELECT qty, cell INTO v_qty, v_cell FROM stock_entries
   WHERE sku_id = v_stock.sku_id AND kind = 'adjustment' AND idempotency_key = p_idempotency_key;
  IF FOUND THEN
    IF v_qty <> p_qty OR v_cell IS DISTINCT FROM p_cell THEN
      RAISE EXCEPTION 'adjustment "%" of SKU "%" was made with another quantity or cell', p_idempotency_key, p_sku
        USING ERRCODE = 'LL001', HINT = 'Use a new key for a new adjustment.';
    END IF;
    RETURN v_stock.on_hand;
  END IF;
  PERFORM check_time('the time of an adjustment', p_at, interval '24 hours', interval '0');
  IF p_qty < 0 AND v_stock.on_hand - v_stock.held + p_qty < 0 THEN
    RAISE EXCEPTION 'SKU "%" has % units on hand, of which % are held', p_sku, v_stock.on_hand, v_stock.held USING ERRCODE = 'LL003';
  ELSIF p_qty > 9223372036854775807 - v_stock.on_hand THEN
    RAISE EXCEPTION 'the quantity on hand would not fit into 64 bits' USING ERRCODE = 'LL002';
  END IF;
  INSERT INTO stock_entries (sku_id, kind, idempotency_key, qty, reason, at, cell)
  VALUES (v_stock.sku_id, 'adjustment', p_idempotency_key, p_qty, p_reason, p_at, p_cell);
  UPDATE stock SET on_hand = on_hand + p_qty WHERE sku_id = v_stock.sku_id;
  RETURN v_stock.on_hand + p_qty;
END $$;
COMMENT ON FUNCTION adjust_stock IS
  'Adds or takes units with a reason, once per (SKU, idempotency key), and returns on hand. Errors: LL001 key used with another quantity or cell, LL002 bad argument, LL003 fewer are on hand.';
REVOKE ALL ON FUNCTION adjust_stock FROM PUBLIC;
GRANT EXECUTE ON FUNCTION adjust_stock TO ledgerlock_warehouse;
