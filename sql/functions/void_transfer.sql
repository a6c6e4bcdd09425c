-- void_transfer(user, kind, source, leg, reason, key, at): says that a charge, payment or proration was never owed, and gives back the
-- whole of it, once per (user, key). Refused when some of it was given back already: the rest is a refund. The charge stays
-- captured, so the period is never charged again. Kind, source, leg, `at` and errors are those of refund.
-- Returns what was given back.
CREATE OR REPLACE FUNCTION void_transfer(
  p_user_id bigint, p_kind text, p_source bigint, p_leg bigint, p_reason text, p_idempotency_key text,
  p_at timestamptz DEFAULT now())
RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  v_of  ledger%ROWTYPE;
  v_old corrections%ROWTYPE;
BEGIN
  PERFORM check_correction(p_idempotency_key, p_reason);
  PERFORM FROM users WHERE user_id = p_user_id FOR NO KEY UPDATE;
  SELECT * INTO v_old FROM corrections WHERE (user_id, kind, idempotency_key) = (p_user_id, 'void', p_idempotency_key);
  IF FOUND THEN
    IF (v_old.of_kind, v_old.of_source, v_old.of_leg) IS DISTINCT FROM (p_kind, p_source, p_leg) THEN
      RAISE EXCEPTION 'void "%" of user % was made for something else', p_idempotency_key, p_user_id
        USING ERRCODE = 'LL001', HINT = 'Use a new key for a new void.';
    END IF;
    RETURN v_old.amount_minor;
  END IF;
  PERFORM check_time('the time of a void', p_at, interval '24 hours', interval '0');
  SELECT * INTO v_of FROM paid_transfer(p_user_id, p_kind, p_source, p_leg);
  IF refundable(v_of) < v_of.amount_minor THEN
    RAISE EXCEPTION 'of % %/% something was given back already', p_kind, p_source, p_leg
      USING ERRCODE = 'LL003', HINT = 'Refund what is left.';
  END IF;
  PERFORM correct(p_user_id, 'void', v_of, v_of.amount_minor, p_reason, p_idempotency_key, p_at);
  RETURN v_of.amount_minor;
END $$;
COMMENT ON FUNCTION void_transfer IS
  'Gives back the whole of what was never owed. Errors: LL001 key used otherwise, LL002 bad argument, LL003 some was given back already.';
REVOKE ALL ON FUNCTION void_transfer FROM PUBLIC;
GRANT EXECUTE ON FUNCTION void_transfer TO ledgerlock_support;
