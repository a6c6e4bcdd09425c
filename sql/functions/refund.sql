-- refund(user, kind, source, leg, amount, reason, key, at): gives back what an entry of ledger took from the wallet, in part or whole, once
-- per (user, key). Kind, source and leg name it as view ledger does: charge, subscription, period; payment, order, 0;
-- proration, its number, 0. Amount null: all that is left. Never more than was paid: for the entry, and for the period,
-- whose prorations count. The charge or order stays what it is. `at` is at most a day before now() and not after it.
-- Returns what was given back. The same key for something else is an error (SQLSTATE LL001).
CREATE OR REPLACE FUNCTION refund(
  p_user_id bigint, p_kind text, p_source bigint, p_leg bigint, p_amount_minor bigint, p_reason text, p_idempotency_key text,
  p_at timestamptz DEFAULT now())
RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  v_of   ledger%ROWTYPE;
  v_old  corrections%ROWTYPE;
  v_left numeric;
BEGIN
  PERFORM check_correction(p_idempotency_key, p_reason);
  IF p_amount_minor <= 0 THEN
    RAISE EXCEPTION 'a refund must be above zero' USING ERRCODE = 'LL002';
  END IF;
  PERFORM FROM users WHERE user_id = p_user_id FOR NO KEY UPDATE;
  SELECT * INTO v_old FROM corrections WHERE (user_id, kind, idempotency_key) = (p_user_id, 'refund', p_idempotency_key);
  IF FOUND THEN
    IF (v_old.of_kind, v_old.of_source, v_old.of_leg) IS DISTINCT FROM (p_kind, p_source, p_leg)
       OR v_old.amount_minor <> p_amount_minor THEN
      RAISE EXCEPTION 'refund "%" of user % was made for something else', p_idempotency_key, p_user_id
        USING ERRCODE = 'LL001', HINT = 'Use a new key for a new refund.';
    END IF;
    RETURN v_old.amount_minor;
  END IF;
  PERFORM check_time('the time of a refund', p_at, interval '24 hours', interval '0');
  SELECT * INTO v_of FROM paid_transfer(p_user_id, p_kind, p_source, p_leg);
  v_left := refundable(v_of);
  IF v_left <= 0 OR p_amount_minor > v_left THEN
    RAISE EXCEPTION 'of % %/% only % minor units are left to refund', p_kind, p_source, p_leg, greatest(v_left, 0)
      USING ERRCODE = 'LL003';
  END IF;
  PERFORM correct(p_user_id, 'refund', v_of, coalesce(p_amount_minor, v_left::bigint), p_reason, p_idempotency_key, p_at);
  RETURN coalesce(p_amount_minor, v_left::bigint);
END $$;
COMMENT ON FUNCTION refund IS
  'Gives back part or all of what a charge, payment or proration took. Errors: LL001 key used otherwise, LL002 bad argument, LL003 more than is left.';
REVOKE ALL ON FUNCTION refund FROM PUBLIC;
GRANT EXECUTE ON FUNCTION refund TO ledgerlock_support;
