-- create_user(external_ref, currency): makes a user with an empty wallet, once per name. Returns the user. The same name with
-- another currency is an error (SQLSTATE LL001).
CREATE OR REPLACE FUNCTION create_user(p_external_ref text, p_currency text)
RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  v_user users%ROWTYPE;
BEGIN
  IF coalesce(p_external_ref, '') = '' OR length(p_external_ref) > 255 THEN
    RAISE EXCEPTION 'the name of a user must have 1 to 255 characters' USING ERRCODE = 'LL002';
  END IF;
  IF p_currency IS NULL OR p_currency !~ '^[A-Z]{3}$' THEN
    RAISE EXCEPTION 'a currency is three capital letters' USING ERRCODE = 'LL002';
  END IF;
  INSERT INTO users (external_ref, currency) VALUES (p_external_ref, p_currency)
  ON CONFLICT (external_ref) DO NOTHING RETURNING * INTO v_user;
  IF NOT FOUND THEN
    SELECT * INTO v_user FROM users WHERE external_ref = p_external_ref;
  END IF;
  IF v_user.currency <> p_currency THEN
    RAISE EXCEPTION 'user "%" has a wallet in %', p_external_ref, v_user.currency USING ERRCODE = 'LL001';
  END IF;
  RETURN v_user.user_id;
END $$;
COMMENT ON FUNCTION create_user IS
  'Makes a user once per name and returns the number. Errors: LL001 the name has another currency, LL002 bad argument.';
REVOKE ALL ON FUNCTION create_user FROM PUBLIC;
GRANT EXECUTE ON FUNCTION create_user TO ledgerlock_shop, ledgerlock_support;
