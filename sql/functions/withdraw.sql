-- withdraw(user, currency, amount, reason, key, at): pays money out of a wallet, once per (user, key), never below zero.
-- Returns the balance afterwards. The same key with another amount is an error (SQLSTATE LL001). `at` is that of deposit.
CREATE OR REPLACE FUNCTION withdraw(
  p_user_id bigint, p_currency text, p_amount_minor bigint, p_reason text, p_idempotency_key text, p_at timestamptz DEFAULT now())
RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  v_user    users%ROWTYPE;
  v_amount  bigint;
  v_balance bigint;
BEGIN
  PERFORM check_correction(p_idempotency_key, p_reason);
  IF p_amount_minor IS NULL OR p_amount_minor <= 0 THEN
    RAISE EXCEPTION 'a withdrawal must be above zero' USING ERRCODE = 'LL002';
  END IF;
  SELECT * INTO v_user FROM users WHERE user_id = p_user_id FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'user % does not exist', p_user_id USING ERRCODE = 'LL002';
  END IF;
  IF p_currency IS DISTINCT FROM v_user.currency THEN
    RAISE EXCEPTION 'user % has a wallet in %, not in %', p_user_id, v_user.currency, p_currency USING ERRCODE = 'LL002';
  END IF;
  SELECT -amount_minor INTO v_amount FROM wallet_entries
   WHERE (user_id, kind, idempotency_key) = (p_user_id, 'withdrawal', p_idempotency_key);
  IF FOUND THEN
    IF v_amount <> p_amount_minor THEN
      RAISE EXCEPTION 'withdrawal "%" of user % was made with another amount', p_idempotency_key, p_user_id
        USING ERRCODE = 'LL001', HINT = 'Use a new key for a new withdrawal.';
    END IF;
    RETURN v_user.balance_minor;
  END IF;
  PERFORM check_time('the time of a withdrawal', p_at, interval '24 hours', interval '0');
  IF p_amount_minor > v_user.balance_minor THEN
    RAISE EXCEPTION 'the wallet of user % has % minor units', p_user_id, v_user.balance_minor USING ERRCODE = 'LL003';
  END IF;
  IF v_user.closed_at IS NOT NULL THEN
    RAISE EXCEPTION 'the account of user % is closed', p_user_id USING ERRCODE = 'LL003';
  END IF;
  INSERT INTO wallet_entries (user_id, kind, idempotency_key, amount_minor, reason, at)
  VALUES (p_user_id, 'withdrawal', p_idempotency_key, -p_amount_minor, p_reason, p_at);
  UPDATE users SET balance_minor = balance_minor - p_amount_minor WHERE user_id = p_user_id RETURNING balance_minor INTO v_balance;
  RETURN v_balance;
END $$;
COMMENT ON FUNCTION withdraw IS
  'Pays out of a wallet once per (user, idempotency key) and returns the balance. Errors: LL001 key used with another amount, LL002 bad argument, LL003 the wallet has less.';
REVOKE ALL ON FUNCTION withdraw FROM PUBLIC;
GRANT EXECUTE ON FUNCTION withdraw TO ledgerlock_cashier;
