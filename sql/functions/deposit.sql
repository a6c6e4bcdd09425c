-- deposit(user, deposit_no, amount, at): puts money into a wallet, once per (user, deposit_no).
-- Returns the balance afterwards. The same number with another amount is an error (SQLSTATE LL001).
CREATE OR REPLACE FUNCTION ledgerlock.deposit(
  p_user_id bigint, p_deposit_no bigint, p_amount_minor bigint, p_at timestamptz DEFAULT now())
RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path = ledgerlock, pg_temp AS $$
DECLARE
  v_currency text;
  v_amount   bigint;
  v_balance  bigint;
BEGIN
  IF p_amount_minor IS NULL OR p_amount_minor <= 0 THEN
    RAISE EXCEPTION 'a deposit must be above zero' USING ERRCODE = 'LL002';
  END IF;
  SELECT currency, balance_minor INTO v_currency, v_balance FROM users WHERE user_id = p_user_id FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'user % does not exist', p_user_id USING ERRCODE = 'LL002';
  END IF;
  SELECT amount_minor INTO v_amount FROM transfers
   WHERE kind = 'deposit' AND source = p_user_id AND leg = p_deposit_no;
  IF FOUND THEN
    IF v_amount <> p_amount_minor THEN
      RAISE EXCEPTION 'deposit % of user % was made with another amount', p_deposit_no, p_user_id
        USING ERRCODE = 'LL001';
    END IF;
    RETURN v_balance;
  END IF;
  INSERT INTO transfers (kind, source, leg, user_id, debit, credit, amount_minor, currency, moved_at)
  VALUES ('deposit', p_user_id, p_deposit_no, p_user_id, 'cash', 'wallet', p_amount_minor, v_currency, p_at);
  UPDATE users SET balance_minor = balance_minor + p_amount_minor WHERE user_id = p_user_id
  RETURNING balance_minor INTO v_balance;
  RETURN v_balance;
END $$;
COMMENT ON FUNCTION ledgerlock.deposit IS
  'Deposits minor units once per (user, deposit number) and returns the balance. Errors: LL001 number used with another amount, LL002 bad argument.';
REVOKE ALL ON FUNCTION ledgerlock.deposit FROM PUBLIC;
GRANT EXECUTE ON FUNCTION ledgerlock.deposit TO ledgerlock_client;
