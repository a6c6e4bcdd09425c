-- refund(user, kind, source, leg, amount, reason, key, at): gives back what an entry of ledger took from the wallet, in part or whole, once
-- per (user, key). Kind, source and leg name it as view ledger does: charge, subscription, period; payment, order, 0;
-- proration, its number, 0. Amount null: all that is left. Never more than was paid: for the entry, and for the period,
-- whose prorations count. The charge or order stays what it is. `at` is at most a day before now() and not after it.
-- Returns what was given back. The same key for something else is an error (SQLSTATE LL001).
CREATE OR REPLACE FUNCTION refund(
  p_user_id bigint, p_kind text, p_source bigint, p_leg bigint, p_amount_minor bigint, p_reason text, p_idempotency_key text,
  p_at timestamptz DEFAULT now())
RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
  IF p_amount_minor <= 0 THEN
    RAISE EXCEPTION 'a refund must be above zero' USING ERRCODE = 'LL002';
  END IF;
  RETURN give_back(p_user_id, 'refund', p_kind, p_source, p_leg, p_amount_minor, p_reason, p_idempotency_key, p_at);
END $$;
COMMENT ON FUNCTION refund IS
  'Gives back part or all of what a charge, payment or proration took. Errors: LL001 key used otherwise, LL002 bad argument, LL003 more than is left.';
REVOKE ALL ON FUNCTION refund FROM PUBLIC;
GRANT EXECUTE ON FUNCTION refund TO ledgerlock_support;
