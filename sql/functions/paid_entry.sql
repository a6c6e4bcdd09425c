-- paid_entry(user, kind, source, leg): the entry of ledger by which a user paid a charge, an order (also from a card) or a change of terms: the
-- time that its row keeps, by which one partition is read, its amount, and what is still paid for the period (null: of an order or a card).
CREATE OR REPLACE FUNCTION paid_entry(p_user_id bigint, p_kind text, p_source bigint, p_leg bigint)
RETURNS TABLE (source_at timestamptz, amount_minor bigint, paid_minor numeric) LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $$
#variable_conflict use_column
DECLARE
  v_sub    bigint := p_source;
  v_period bigint := p_leg;
BEGIN
  IF p_kind = 'proration' THEN
    SELECT w.at, w.of_source, w.of_leg INTO source_at, v_sub, v_period
      FROM wallet_entries AS w WHERE w.kind = 'proration' AND w.entry_id = p_source;
  ELSE
    source_at := CASE p_kind
      WHEN 'charge' THEN (SELECT period_start(anchor_at, unit, every, p_leg) FROM subscriptions
                           WHERE subscription_id = p_source AND p_leg BETWEEN 0 AND next_period_no)
      WHEN 'card' THEN (SELECT p.source_at FROM payments AS p WHERE p.payment_id = p_source)
      WHEN 'payment' THEN (SELECT placed_at FROM orders WHERE order_id = p_source) END;
  END IF;
  SELECT l.amount_minor INTO amount_minor FROM ledger AS l
   WHERE (l.source, l.leg, l.kind, l.source_at, l.user_id) = (p_source, p_leg, p_kind, paid_entry.source_at, p_user_id) AND l.debit IN ('wallet', 'gateway');
  IF NOT FOUND THEN
    RAISE EXCEPTION 'user % has paid no % %/%', p_user_id, p_kind, p_source, p_leg
      USING ERRCODE = 'LL002', HINT = 'charge: subscription and period; payment: order and 0; proration: its number and 0.';
  END IF;
  IF p_kind NOT IN ('payment', 'card') THEN
    SELECT paid_for_period(v_sub, v_period, period_start(anchor_at, unit, every, v_period)) INTO paid_minor
      FROM subscriptions WHERE subscription_id = v_sub;
  END IF;
  RETURN NEXT;
END $$;
COMMENT ON FUNCTION paid_entry IS 'The entry of ledger by which a user paid something, and what is still paid for its period. Errors: LL002 there is none.';
REVOKE ALL ON FUNCTION paid_entry FROM PUBLIC;
