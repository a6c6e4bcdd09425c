-- pay_with(user, method, customer, card): from now on periods and orders of the user are paid by 'card', by the gateway's ids of customer
-- and card, or from the 'wallet' (both ids null), as for a user of whom nothing was said. An attempt that was planned before keeps its card; the next one has the new. The same again changes nothing. Returns true if something changed.
CREATE OR REPLACE FUNCTION pay_with(
  p_user_id bigint, p_method text, p_customer text DEFAULT NULL, p_card text DEFAULT NULL)
RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  v_user users%ROWTYPE;
BEGIN
  IF p_method IS NULL OR p_method NOT IN ('wallet', 'card') THEN
    RAISE EXCEPTION 'a user pays from the wallet or by card' USING ERRCODE = 'LL002';
  ELSIF num_nonnulls(p_customer, p_card) <> 2 * (p_method = 'card')::int THEN
    RAISE EXCEPTION 'customer and card are named for a card, and neither for the wallet' USING ERRCODE = 'LL002';
  ELSIF p_customer !~ '^[A-Za-z0-9_-]{1,255}$' OR p_card !~ '^[A-Za-z0-9_-]{1,255}$' THEN
    RAISE EXCEPTION 'customer and card are ids of the gateway: letters, digits, _ and -' USING ERRCODE = 'LL002';
  ELSIF p_customer ~ '^[0-9-]{12,}$' OR p_card ~ '^[0-9-]{12,}$' THEN
    RAISE EXCEPTION 'this looks like the number of a card, which must never come here' USING ERRCODE = 'LL002',
      HINT = 'Give the id that the gateway has for the card.';
  END IF;
  SELECT * INTO v_user FROM users WHERE user_id = p_user_id FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'user % does not exist', p_user_id USING ERRCODE = 'LL002';
  ELSIF v_user.closed_at IS NOT NULL THEN
    RAISE EXCEPTION 'the account of user % was closed at %', p_user_id, v_user.closed_at USING ERRCODE = 'LL003';
  ELSIF (v_user.card_customer, v_user.card_method) IS NOT DISTINCT FROM (p_customer, p_card) THEN
    RETURN false;
  END IF;
  UPDATE users SET card_customer = p_customer, card_method = p_card WHERE user_id = p_user_id;
  INSERT INTO events (event, user_id, reason) VALUES ('pays_with', p_user_id, p_customer || ' ' || p_card);
  RETURN true;
END $$;
COMMENT ON FUNCTION pay_with IS
  'Pays periods and orders of a user by card, or from the wallet again. Errors: LL002 bad argument or no such user, LL003 the account is closed.';
REVOKE ALL ON FUNCTION pay_with FROM PUBLIC;
GRANT EXECUTE ON FUNCTION pay_with TO ledgerlock_shop, ledgerlock_support;
