-- receive_stock(sku, key, qty, at): a delivery arrives, once per (SKU, key); `at` is at most a day before now() and not after it.
-- Returns the quantity on hand afterwards. The same key with another quantity is an error (SQLSTATE LL001).
CREATE OR REPLACE FUNCTION receive_stock(
  p_sku text, p_idempotency_key text, p_qty bigint, p_at timestamptz DEFAULT now())
RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  v_stock stock%ROWTYPE;
  v_qty   bigint;
BEGIN
  IF p_qty IS NULL OR p_qty <= 0 THEN
    RAISE EXCEPTION 'a delivery must be above zero' USING ERRCODE = 'LL002';
  END IF;
  IF coalesce(p_idempotency_key, '') = '' OR length(p_idempotency_key) > 255 THEN
    RAISE EXCEPTION 'idempotency key must have 1 to 255 characters' USING ERRCODE = 'LL002';
  END IF;
  SELECT * INTO v_stock FROM stock WHERE sku = p_sku FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'SKU "%" does not exist', p_sku USING ERRCODE = 'LL002';
  END IF;
  SELECT qty INTO v_qty FROM stock_entries
   WHERE sku_id = v_stock.sku_id AND kind = 'delivery' AND idempotency_key = p_idempotency_key;
  IF FOUND THEN
    IF v_qty <> p_qty THEN
      RAISE EXCEPTION 'delivery "%" of SKU "%" came with another quantity', p_idempotency_key, p_sku
        USING ERRCODE = 'LL001', HINT = 'Use a new key for a new delivery.';
    END IF;
    RETURN v_stock.on_hand;
  END IF;
  PERFORM check_time('the time of a delivery', p_at, interval '24 hours', interval '0');
  IF p_qty > 9223372036854775807 - v_stock.on_hand THEN
    RAISE EXCEPTION 'the quantity on hand would not fit into 64 bits' USING ERRCODE = 'LL002';
  END IF;
  INSERT INTO stock_entries (sku_id, kind, idempotency_key, qty, at) VALUES (v_stock.sku_id, 'delivery', p_idempotency_key, p_qty, p_at);
  UPDATE stock SET on_hand = on_hand + p_qty WHERE sku_id = v_stock.sku_id;
  RETURN v_stock.on_hand + p_qty;
END $$;
COMMENT ON FUNCTION receive_stock IS
  'Adds units once per (SKU, idempotency key) and returns on hand. Errors: LL001 key used with another quantity, LL002 bad argument.';
REVOKE ALL ON FUNCTION receive_stock FROM PUBLIC;
GRANT EXECUTE ON FUNCTION receive_stock TO ledgerlock_warehouse;
