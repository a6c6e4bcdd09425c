-- set_price(user, subscription, from_period, unit price): set_terms with the plan and the quantity that the subscription has in that
-- period, which must be named.
CREATE OR REPLACE FUNCTION set_price(
  p_user_id bigint, p_subscription_id bigint, p_from_period bigint, p_unit_minor bigint)
RETURNS timestamptz LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  v_terms record;
BEGIN
  IF p_from_period IS NULL THEN
    RAISE EXCEPTION 'name the first period of the price' USING ERRCODE = 'LL002';
  END IF;
  PERFORM FROM users WHERE user_id = p_user_id FOR NO KEY UPDATE;
  SELECT * INTO v_terms FROM terms_of(p_subscription_id, p_from_period);
  RETURN set_terms(p_user_id, p_subscription_id, p_from_period, coalesce(v_terms.plan, '?'), coalesce(v_terms.quantity, 1), p_unit_minor);
END $$;
COMMENT ON FUNCTION set_price IS
  'The price of one unit from a period on; returns the start of it. Errors: as set_terms.';
REVOKE ALL ON FUNCTION set_price FROM PUBLIC;
GRANT EXECUTE ON FUNCTION set_price TO ledgerlock_support;
