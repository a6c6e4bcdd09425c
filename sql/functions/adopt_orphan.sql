-- adopt_orphan(reference, paid, attempt): an orphan of the gateway (reconcile) pays after all what it was taken for: a period that is not
-- paid, and that no other attempt may hold money for. The attempt is unknown again, and the job payments looks it up; what it finds there
-- is settled as any answer is. A decline is final. Orders are not paid so, since their units are not held any more: refund_orphan gives the money back.
-- reference is the gateway's id of the payment, paid 'kind/source/leg'. Returns true if the attempt was void, false if an earlier call
-- has adopted it.
CREATE OR REPLACE FUNCTION adopt_orphan(p_reference text, p_paid text, p_attempt_no integer)
RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  v_due     timestamptz := now();
  v_payment payments%ROWTYPE;
BEGIN
  IF (p_reference ~ '^[A-Za-z0-9_-]{1,255}$' AND p_paid ~ '^charge/[0-9]{1,18}/[0-9]{1,18}$' AND p_attempt_no > 0) IS NOT TRUE THEN
    RAISE EXCEPTION 'an orphan that pays a period has a reference, charge/SUBSCRIPTION/PERIOD and an attempt' USING ERRCODE = 'LL002',
      HINT = 'What was taken for an order is given back: ledgerlock reconcile --refund.';
  END IF;
  PERFORM pg_advisory_xact_lock(hashtextextended('orphan ' || p_reference, 0)); -- refund_orphan takes it, too
  SELECT * INTO v_payment FROM payments
   WHERE kind = 'charge' AND (source, leg) = (split_part(p_paid, '/', 2)::bigint, split_part(p_paid, '/', 3)::bigint) AND attempt_no = p_attempt_no;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'there is no attempt % of %', p_attempt_no, p_paid USING ERRCODE = 'LL003';
  END IF;
  PERFORM FROM users WHERE user_id = v_payment.user_id FOR NO KEY UPDATE;
  SELECT * INTO v_payment FROM payments WHERE payment_id = v_payment.payment_id;
  IF v_payment.reference = p_reference AND v_payment.state <> 'void' THEN
    RETURN false;
  ELSIF EXISTS (SELECT FROM events WHERE event = 'orphan_refunded' AND idempotency_key = p_reference) THEN
    RAISE EXCEPTION 'the payment % goes back to its card', p_reference USING ERRCODE = 'LL003';
  END IF;
  UPDATE subscriptions SET state = 'paying'
   WHERE subscription_id = v_payment.source AND next_period_no = v_payment.leg AND state IN ('active', 'past_due', 'unpaid');
  IF NOT FOUND OR v_payment.state <> 'void' THEN
    RAISE EXCEPTION 'period % of subscription % does not wait for a payment', v_payment.leg, v_payment.source
      USING ERRCODE = 'LL003', HINT = 'An orphan that pays nothing is given back: ledgerlock reconcile --refund ' || p_reference;
  END IF;
  UPDATE payments SET state = 'unknown', reference = p_reference, reason = 'an orphan, adopted by ' || session_user, due_at = v_due,
                      worker = session_user, calls = greatest(calls, 3) -- payment_looks
   WHERE payment_id = v_payment.payment_id;
  RETURN true;
END $$;
COMMENT ON FUNCTION adopt_orphan IS
  'An orphan of the gateway pays the period that it was taken for: its attempt is looked up again. Returns false if it was adopted before. Errors: LL002 bad argument, LL003 there is no such attempt, or its period does not wait for a payment.';
REVOKE ALL ON FUNCTION adopt_orphan FROM PUBLIC;
GRANT EXECUTE ON FUNCTION adopt_orphan TO ledgerlock_support;
