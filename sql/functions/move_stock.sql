-- move_stock(stock, kind, source, qty, at): writes the movement of a client function and the quantity on hand. The caller has
-- locked the row of stock. Returns the quantity on hand afterwards.
CREATE OR REPLACE FUNCTION move_stock(p_stock stock, p_kind text, p_source bigint, p_qty bigint, p_at timestamptz)
RETURNS bigint LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
  v_on_hand bigint;
BEGIN
  IF NOT EXISTS (SELECT FROM months WHERE month = date_trunc('month', p_at AT TIME ZONE 'UTC')::date) THEN
    PERFORM make_months(p_at, p_at);
  END IF;
  INSERT INTO stock_movements (sku_id, kind, source, qty, fence, moved_at, source_at)
  VALUES ((p_stock).sku_id, p_kind, p_source, p_qty, (p_stock).fence, p_at, p_at);
  UPDATE stock SET on_hand = on_hand + p_qty WHERE sku_id = (p_stock).sku_id RETURNING on_hand INTO v_on_hand;
  RETURN v_on_hand;
END $$;
COMMENT ON FUNCTION move_stock IS 'Writes a movement and the quantity on hand, and returns that.';
REVOKE ALL ON FUNCTION move_stock FROM PUBLIC;
