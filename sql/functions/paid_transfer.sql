-- paid_transfer(user, kind, source, leg): the entry of ledger by which a user paid a charge, an order or a change of terms, found
-- by the time that its row keeps, so that one partition is read.
CREATE OR REPLACE FUNCTION paid_transfer(p_user_id bigint, p_kind text, p_source bigint, p_leg bigint)
RETURNS ledger LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $$
DECLARE
  v_at timestamptz;
  v_of ledger%ROWTYPE;
BEGIN
  v_at := CASE p_kind
    WHEN 'charge' THEN (SELECT period_start(anchor_at, unit, every, p_leg) FROM subscriptions
                         WHERE subscription_id = p_source AND p_leg BETWEEN 0 AND next_period_no)
    WHEN 'payment' THEN (SELECT placed_at FROM orders WHERE order_id = p_source)
    WHEN 'proration' THEN (SELECT at FROM prorations WHERE proration_id = p_source) END;
  SELECT * INTO v_of FROM ledger
   WHERE (source, leg, kind, source_at, user_id, debit) = (p_source, p_leg, p_kind, v_at, p_user_id, 'wallet');
  IF NOT FOUND THEN
    RAISE EXCEPTION 'user % has paid no % %/%', p_user_id, p_kind, p_source, p_leg
      USING ERRCODE = 'LL002', HINT = 'charge: subscription and period; payment: order and 0; proration: its number and 0.';
  END IF;
  RETURN v_of;
END $$;
COMMENT ON FUNCTION paid_transfer IS 'The entry of ledger by which a user paid something. Errors: LL002 there is none.';
REVOKE ALL ON FUNCTION paid_transfer FROM PUBLIC;
