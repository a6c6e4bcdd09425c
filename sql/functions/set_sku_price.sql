-- set_sku_price(sku, price, old_price): what a unit costs from now on, in the currency of the SKU. Orders that were placed keep their
-- prices. With old_price the price is only changed from that one: a call that is late, or made again after somebody else's, is
-- refused (SQLSTATE LL003) and undoes nothing. Returns the price.
CREATE OR REPLACE FUNCTION set_sku_price(p_sku text, p_unit_price_minor bigint, p_old_price_minor bigint DEFAULT NULL)
RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  v_price bigint;
BEGIN
  IF (p_unit_price_minor >= 0) IS NOT TRUE THEN
    RAISE EXCEPTION 'a price is from 0' USING ERRCODE = 'LL002';
  END IF;
  SELECT unit_price_minor INTO v_price FROM stock WHERE sku = p_sku FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'SKU "%" does not exist', p_sku USING ERRCODE = 'LL002';
  END IF;
  IF v_price = p_unit_price_minor THEN
    RETURN v_price;
  END IF;
  IF v_price <> p_old_price_minor THEN
    RAISE EXCEPTION 'SKU "%" costs %, not %', p_sku, v_price, p_old_price_minor USING ERRCODE = 'LL003';
  END IF;
  UPDATE stock SET unit_price_minor = p_unit_price_minor WHERE sku = p_sku;
  RETURN p_unit_price_minor;
END $$;
COMMENT ON FUNCTION set_sku_price IS
  'What a unit costs from now on; returns that. Errors: LL002 bad argument, LL003 it does not cost the old price that was named.';
REVOKE ALL ON FUNCTION set_sku_price FROM PUBLIC;
GRANT EXECUTE ON FUNCTION set_sku_price TO ledgerlock_support;
