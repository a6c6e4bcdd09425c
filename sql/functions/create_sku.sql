-- create_sku(sku, price, currency): makes a SKU without a unit on hand, once per name. Returns its number. The same name with another
-- currency or another first price is an error (SQLSTATE LL001); a price that set_sku_price gave since does not matter.
CREATE OR REPLACE FUNCTION create_sku(p_sku text, p_unit_price_minor bigint, p_currency text)
RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  v_stock stock%ROWTYPE;
BEGIN
  IF coalesce(p_sku, '') = '' OR length(p_sku) > 255 THEN
    RAISE EXCEPTION 'the name of a SKU must have 1 to 255 characters' USING ERRCODE = 'LL002';
  END IF;
  IF (p_unit_price_minor >= 0) IS NOT TRUE THEN
    RAISE EXCEPTION 'a price is from 0' USING ERRCODE = 'LL002';
  END IF;
  IF p_currency IS NULL OR p_currency !~ '^[A-Z]{3}$' THEN
    RAISE EXCEPTION 'a currency is three capital letters' USING ERRCODE = 'LL002';
  END IF;
  INSERT INTO stock (sku, initial_qty, on_hand, unit_price_minor, currency) VALUES (p_sku, 0, 0, p_unit_price_minor, p_currency)
  ON CONFLICT (sku) DO NOTHING RETURNING * INTO v_stock;
  IF NOT FOUND THEN
    SELECT * INTO v_stock FROM stock WHERE sku = p_sku;
    v_stock.unit_price_minor := coalesce((SELECT old_minor FROM events WHERE sku_id = v_stock.sku_id ORDER BY event_id LIMIT 1),
                                         v_stock.unit_price_minor); -- at which it was made
  END IF;
  IF (v_stock.currency, v_stock.unit_price_minor) IS DISTINCT FROM (p_currency, p_unit_price_minor) THEN
    RAISE EXCEPTION 'SKU "%" was made at % %', p_sku, v_stock.unit_price_minor, v_stock.currency
      USING ERRCODE = 'LL001', HINT = 'set_sku_price changes the price.';
  END IF;
  RETURN v_stock.sku_id;
END $$;
COMMENT ON FUNCTION create_sku IS
  'Makes a SKU once per name and returns its number. Errors: LL001 the name has another currency or was made at another price, LL002 bad argument.';
REVOKE ALL ON FUNCTION create_sku FROM PUBLIC;
GRANT EXECUTE ON FUNCTION create_sku TO ledgerlock_support;
