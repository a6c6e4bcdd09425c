-- receive_stock(sku, delivery_no, qty, at): a delivery arrives, once per (sku, delivery_no); `at` is at most a day
-- before now() and not after it.
-- Returns the quantity on hand afterwards. The same number with another quantity is an error (SQLSTATE LL001).
CREATE OR REPLACE FUNCTION receive_stock(
  p_sku text, p_delivery_no bigint, p_qty bigint, p_at timestamptz DEFAULT now())
RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  v_stock stock%ROWTYPE;
  v_qty   bigint;
BEGIN
  IF p_qty IS NULL OR p_qty <= 0 THEN
    RAISE EXCEPTION 'a delivery must be above zero' USING ERRCODE = 'LL002';
  END IF;
  IF p_delivery_no IS NULL THEN
    RAISE EXCEPTION 'a delivery needs a number' USING ERRCODE = 'LL002';
  END IF;
  SELECT * INTO v_stock FROM stock WHERE sku = p_sku FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'SKU "%" does not exist', p_sku USING ERRCODE = 'LL002';
  END IF;
  SELECT qty INTO v_qty FROM deliveries WHERE sku_id = v_stock.sku_id AND delivery_no = p_delivery_no;
  IF FOUND THEN
    IF v_qty <> p_qty THEN
      RAISE EXCEPTION 'delivery % of SKU "%" came with another quantity', p_delivery_no, p_sku
        USING ERRCODE = 'LL001';
    END IF;
    RETURN v_stock.on_hand;
  END IF;
  PERFORM check_time('the time of a delivery', p_at, interval '1 day', interval '0');
  IF p_qty > 9223372036854775807 - v_stock.on_hand THEN
    RAISE EXCEPTION 'the quantity on hand would not fit into 64 bits' USING ERRCODE = 'LL002';
  END IF;
  INSERT INTO deliveries (sku_id, delivery_no, qty, at) VALUES (v_stock.sku_id, p_delivery_no, p_qty, p_at);
  RETURN move_stock(v_stock, 'receive', p_delivery_no, p_qty, p_at);
END $$;
COMMENT ON FUNCTION receive_stock IS
  'Adds units once per (SKU, delivery number) and returns on hand. Errors: LL001 number used with another quantity, LL002 bad argument.';
REVOKE ALL ON FUNCTION receive_stock FROM PUBLIC;
GRANT EXECUTE ON FUNCTION receive_stock TO ledgerlock_warehouse;
