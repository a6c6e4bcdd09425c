-- correct(user, kind, of, amount, reason, key, at): writes a correction and the wallet. For refund, void_transfer,
-- return_units and withdraw, which have locked the row of the user and checked all else. `of` is the entry of ledger that is
-- undone, null for a withdrawal. Returns the balance afterwards.
CREATE OR REPLACE FUNCTION correct(
  p_user_id bigint, p_kind text, p_of ledger, p_amount_minor bigint, p_reason text, p_idempotency_key text, p_at timestamptz)
RETURNS bigint LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
  v_user   users%ROWTYPE;
  v_before bigint;
BEGIN
  SELECT * INTO v_user FROM users WHERE user_id = p_user_id;
  IF v_user.closed_at IS NOT NULL THEN
    RAISE EXCEPTION 'the account of user % is closed', p_user_id USING ERRCODE = 'LL003';
  END IF;
  IF p_kind <> 'withdrawal' THEN
    SELECT coalesce(sum(amount_minor), 0) INTO v_before FROM corrections
     WHERE (of_kind, of_source, of_leg) = ((p_of).kind, (p_of).source, (p_of).leg);
    IF p_amount_minor > 9223372036854775807 - v_user.balance_minor THEN
      RAISE EXCEPTION 'the balance would not fit into 64 bits' USING ERRCODE = 'LL002';
    END IF;
  END IF;
  INSERT INTO corrections (user_id, kind, idempotency_key, amount_minor, currency, of_kind, of_source, of_leg, of_at, of_minor,
                           before_minor, reason, at)
  VALUES (p_user_id, p_kind, p_idempotency_key, p_amount_minor, v_user.currency, (p_of).kind, (p_of).source, (p_of).leg,
          (p_of).source_at, (p_of).amount_minor, v_before, p_reason, p_at);
  UPDATE users SET balance_minor = balance_minor + CASE p_kind WHEN 'withdrawal' THEN -p_amount_minor ELSE p_amount_minor END
   WHERE user_id = p_user_id RETURNING balance_minor INTO v_user.balance_minor;
  IF p_kind <> 'withdrawal' THEN
    PERFORM retry_past_due(p_user_id, v_user.balance_minor, p_at);
  END IF;
  RETURN v_user.balance_minor;
END $$;
COMMENT ON FUNCTION correct IS
  'Writes a correction and the wallet; returns the balance. Errors: LL002 no room in the wallet, LL003 closed account.';
REVOKE ALL ON FUNCTION correct FROM PUBLIC;
