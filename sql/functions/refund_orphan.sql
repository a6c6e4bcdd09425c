-- refund_orphan(reference, paid, amount, currency): writes down, before the gateway is asked, that an orphan is given back there: a payment
-- that the gateway took and that no row here has (reconcile). Once for each reference, the gateway's id of the payment.
-- Returns the key to ask the gateway under, the same each time, so that it gives back once.
CREATE OR REPLACE FUNCTION refund_orphan(p_reference text, p_paid text, p_amount_minor bigint, p_currency text)
RETURNS text LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
  IF p_reference IS NULL OR p_reference !~ '^[A-Za-z0-9_-]{1,255}$' OR p_amount_minor IS NULL OR p_amount_minor < 0 THEN
    RAISE EXCEPTION 'an orphan has a reference of letters, digits, _ and -, and an amount' USING ERRCODE = 'LL002';
  END IF;
  PERFORM pg_advisory_xact_lock(hashtextextended('orphan ' || p_reference, 0)); -- adopt_orphan takes it, too
  IF EXISTS (SELECT FROM payments WHERE reference = p_reference AND kind <> 'refund' AND state NOT IN ('declined', 'void')) THEN
    RAISE EXCEPTION 'the payment % is captured or adopted here, and is no orphan', p_reference
      USING ERRCODE = 'LL003', HINT = 'Give it back by refund, void_entry or return_units.';
  END IF;
  INSERT INTO events (event, idempotency_key, amount_minor, reason)
  VALUES ('orphan_refunded', p_reference, p_amount_minor, concat_ws(', ', p_paid, p_amount_minor, p_currency))
  ON CONFLICT (idempotency_key) WHERE event = 'orphan_refunded' DO NOTHING;
  RETURN payment_key((SELECT instance_id FROM instance), 'orphan/' || p_reference, 1);
END $$;
COMMENT ON FUNCTION refund_orphan IS
  'Writes down that a payment which no row here has is given back at the gateway, and returns the key for it. Errors: LL002 bad argument, LL003 it is captured here.';
REVOKE ALL ON FUNCTION refund_orphan FROM PUBLIC;
GRANT EXECUTE ON FUNCTION refund_orphan TO ledgerlock_support;
