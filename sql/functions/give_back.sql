-- give_back(user, kind, of kind, of source, of leg, amount, reason, key, at): undoes an entry of ledger by a new one, once per
-- (user, kind, key), and puts what it gives back into the wallet; what was paid by card goes back to the card (plan_refund). For refund (part of it, or all that is left: amount null),
-- void_entry (the whole, or nothing) and return_units (at most what is left, which may be nothing). Never more than was paid: for
-- the entry, and for the period, whose prorations count. Locks the row of the user. `at` is at most a day before now() and not
-- after it. Returns what was given back.
CREATE OR REPLACE FUNCTION give_back(
  p_user_id bigint, p_kind text, p_of_kind text, p_of_source bigint, p_of_leg bigint, p_amount_minor bigint, p_reason text,
  p_idempotency_key text, p_at timestamptz)
RETURNS bigint LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
  v_user   users%ROWTYPE;
  v_old    wallet_entries%ROWTYPE;
  v_of     record;
  v_before bigint;
  v_left   numeric;
  v_amount bigint;
  v_entry  bigint;
BEGIN
  PERFORM check_correction(p_idempotency_key, p_reason);
  SELECT * INTO v_user FROM users WHERE user_id = p_user_id FOR NO KEY UPDATE;
  SELECT 'card', payment_id, 0 INTO v_of FROM payments
   WHERE (source, kind, leg, user_id, state) = (p_of_source, p_of_kind, p_of_leg, p_user_id, 'captured') AND kind <> 'refund';
  IF FOUND THEN
    p_of_kind := 'card'; p_of_source := v_of.payment_id; p_of_leg := 0;
  END IF;
  SELECT * INTO v_old FROM wallet_entries WHERE (user_id, kind, idempotency_key) = (p_user_id, p_kind, p_idempotency_key);
  IF FOUND THEN
    IF (v_old.of_kind, v_old.of_source, v_old.of_leg) IS DISTINCT FROM (p_of_kind, p_of_source, p_of_leg)
       OR v_old.amount_minor <> p_amount_minor THEN
      RAISE EXCEPTION '% "%" of user % was made for something else', p_kind, p_idempotency_key, p_user_id
        USING ERRCODE = 'LL001', HINT = format('Use a new key for a new %s.', p_kind);
    END IF;
    RETURN v_old.amount_minor;
  END IF;
  PERFORM check_time('the time of a ' || p_kind, p_at, interval '24 hours', interval '0');
  SELECT * INTO v_of FROM paid_entry(p_user_id, p_of_kind, p_of_source, p_of_leg);
  SELECT coalesce(sum(amount_minor), 0) INTO v_before FROM wallet_entries
   WHERE (of_kind, of_source, of_leg) = (p_of_kind, p_of_source, p_of_leg) AND kind <> 'proration';
  v_left := least(v_of.amount_minor - v_before, v_of.paid_minor);
  IF p_kind = 'void' AND v_left < v_of.amount_minor THEN
    RAISE EXCEPTION 'of % %/% something was given back already', p_of_kind, p_of_source, p_of_leg
      USING ERRCODE = 'LL003', HINT = 'Refund what is left.';
  ELSIF p_kind = 'refund' AND (v_left <= 0 OR p_amount_minor > v_left) THEN
    RAISE EXCEPTION 'of % %/% only % minor units are left to refund', p_of_kind, p_of_source, p_of_leg, greatest(v_left, 0)
      USING ERRCODE = 'LL003';
  END IF;
  v_amount := least(p_amount_minor, v_left);
  IF v_amount <= 0 THEN
    RETURN 0;
  END IF;
  IF v_user.closed_at IS NOT NULL THEN
    RAISE EXCEPTION 'the account of user % is closed', p_user_id USING ERRCODE = 'LL003';
  ELSIF p_of_kind <> 'card' AND v_amount > 9223372036854775807 - v_user.balance_minor THEN
    RAISE EXCEPTION 'the balance would not fit into 64 bits' USING ERRCODE = 'LL002';
  END IF;
  INSERT INTO wallet_entries (user_id, kind, idempotency_key, amount_minor, of_kind, of_source, of_leg, of_at, of_minor, before_minor,
                              reason, at)
  VALUES (p_user_id, p_kind, p_idempotency_key, v_amount, p_of_kind, p_of_source, p_of_leg, v_of.source_at, v_of.amount_minor,
          v_before, p_reason, p_at)
  RETURNING entry_id INTO v_entry;
  IF p_of_kind = 'card' THEN
    PERFORM plan_refund(v_entry, 1);
    RETURN v_amount;
  END IF;
  UPDATE users SET balance_minor = balance_minor + v_amount WHERE user_id = p_user_id;
  PERFORM retry_past_due(p_user_id, v_user.balance_minor + v_amount, p_at);
  RETURN v_amount;
END $$;
COMMENT ON FUNCTION give_back IS
  'Undoes an entry of ledger, in part or whole; returns what was given back. Errors: LL001 key used otherwise, LL002 bad argument, LL003 less is left, or the account is closed.';
REVOKE ALL ON FUNCTION give_back FROM PUBLIC;
