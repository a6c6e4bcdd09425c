-- deposit(user, currency, amount, key, at): puts money into a wallet, once per (user, key); `at` is at most a day before
-- now() and not after it. Returns the balance afterwards. The same key with another amount is an error (SQLSTATE LL001).
CREATE OR REPLACE FUNCTION deposit(
  p_user_id bigint, p_currency text, p_amount_minor bigint, p_idempotency_key text, p_at timestamptz DEFAULT now())
RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  v_currency text;
  v_amount   bigint;
  v_balance  bigint;
  v_closed_at timestamptz;
BEGIN
  IF p_amount_minor IS NULL OR p_amount_minor <= 0 THEN
    RAISE EXCEPTION 'a deposit must be above zero' USING ERRCODE = 'LL002';
  END IF;
  IF coalesce(p_idempotency_key, '') = '' OR length(p_idempotency_key) > 255 THEN
    RAISE EXCEPTION 'idempotency key must have 1 to 255 characters' USING ERRCODE = 'LL002';
  END IF;
  SELECT currency, balance_minor, closed_at INTO v_currency, v_balance, v_closed_at
    FROM users WHERE user_id = p_user_id FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'user % does not exist', p_user_id USING ERRCODE = 'LL002';
  END IF;
  IF p_currency IS DISTINCT FROM v_currency THEN
    RAISE EXCEPTION 'user % has a wallet in %, not in %', p_user_id, v_currency, p_currency USING ERRCODE = 'LL002';
  END IF;
  SELECT amount_minor INTO v_amount FROM wallet_entries
   WHERE (user_id, kind, idempotency_key) = (p_user_id, 'deposit', p_idempotency_key);
  IF FOUND THEN
    IF v_amount <> p_amount_minor THEN
      RAISE EXCEPTION 'deposit "%" of user % was made with another amount', p_idempotency_key, p_user_id
        USING ERRCODE = 'LL001', HINT = 'Use a new key for a new deposit.';
    END IF;
    RETURN v_balance;
  END IF;
  IF v_closed_at IS NOT NULL THEN
    RAISE EXCEPTION 'the account of user % is closed', p_user_id USING ERRCODE = 'LL003';
  END IF;
  PERFORM check_time('the time of a deposit', p_at, interval '24 hours', interval '0');
  IF p_amount_minor > 9223372036854775807 - v_balance THEN
    RAISE EXCEPTION 'the balance would not fit into 64 bits' USING ERRCODE = 'LL002';
  END IF;
  INSERT INTO wallet_entries (user_id, kind, idempotency_key, amount_minor, at)
  VALUES (p_user_id, 'deposit', p_idempotency_key, p_amount_minor, p_at);
  UPDATE users SET balance_minor = balance_minor + p_amount_minor WHERE user_id = p_user_id
  RETURNING balance_minor INTO v_balance;
  PERFORM retry_past_due(p_user_id, v_balance, p_at);
  RETURN v_balance;
END $$;
COMMENT ON FUNCTION deposit IS
  'Deposits minor units once per (user, idempotency key) and returns the balance. Errors: LL001 key used with another amount, LL002 bad argument.';
REVOKE ALL ON FUNCTION deposit FROM PUBLIC;
GRANT EXECUTE ON FUNCTION deposit TO ledgerlock_cashier;
