-- set_price(user, subscription, from_period, unit price): set_terms with the price alone: plan and quantity stay what they are or become
-- by other decisions. The period must be named.
CREATE OR REPLACE FUNCTION set_price(
  p_user_id bigint, p_subscription_id bigint, p_from_period bigint, p_unit_minor bigint)
RETURNS timestamptz LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
  IF p_from_period IS NULL OR p_unit_minor IS NULL THEN
    RAISE EXCEPTION 'name the first period of the price, and the price' USING ERRCODE = 'LL002';
  END IF;
  RETURN set_terms(p_user_id, p_subscription_id, p_from_period, NULL, NULL, p_unit_minor);
END $$;
COMMENT ON FUNCTION set_price IS
  'The price of one unit from a period on; returns the start of it. Errors: as set_terms.';
REVOKE ALL ON FUNCTION set_price FROM PUBLIC;
GRANT EXECUTE ON FUNCTION set_price TO ledgerlock_support;
