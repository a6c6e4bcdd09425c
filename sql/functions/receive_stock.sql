-- receive_stock(sku, delivery_no, qty, at): a delivery arrives, once per (sku, delivery_no).
-- Returns what is on hand afterwards. The same number with another quantity is an error (SQLSTATE LL001).
CREATE OR REPLACE FUNCTION ledgerlock.receive_stock(
  p_sku text, p_delivery_no bigint, p_qty bigint, p_at timestamptz DEFAULT now())
RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path = ledgerlock, pg_temp AS $$
DECLARE
  v_stock stock%ROWTYPE;
  v_qty   bigint;
BEGIN
  IF p_qty IS NULL OR p_qty <= 0 THEN
    RAISE EXCEPTION 'a delivery must be above zero' USING ERRCODE = 'LL002';
  END IF;
  SELECT * INTO v_stock FROM stock WHERE sku = p_sku FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'SKU "%" does not exist', p_sku USING ERRCODE = 'LL002';
  END IF;
  SELECT qty INTO v_qty FROM stock_movements
   WHERE sku_id = v_stock.sku_id AND kind = 'receive' AND source = p_delivery_no;
  IF FOUND THEN
    IF v_qty <> p_qty THEN
      RAISE EXCEPTION 'delivery % of SKU "%" came with another quantity', p_delivery_no, p_sku
        USING ERRCODE = 'LL001';
    END IF;
    RETURN v_stock.on_hand;
  END IF;
  INSERT INTO stock_movements (sku_id, kind, source, qty, fence, moved_at)
  VALUES (v_stock.sku_id, 'receive', p_delivery_no, p_qty, v_stock.fence, p_at);
  UPDATE stock SET on_hand = on_hand + p_qty WHERE sku_id = v_stock.sku_id
  RETURNING on_hand INTO v_stock.on_hand;
  RETURN v_stock.on_hand;
END $$;
COMMENT ON FUNCTION ledgerlock.receive_stock IS
  'Adds units once per (SKU, delivery number) and returns on hand. Errors: LL001 number used with another quantity, LL002 bad argument.';
REVOKE ALL ON FUNCTION ledgerlock.receive_stock FROM PUBLIC;
GRANT EXECUTE ON FUNCTION ledgerlock.receive_stock TO ledgerlock_client;
