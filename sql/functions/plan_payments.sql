-- plan_payments(kind, sources, legs, times, amounts, token, worker, now), in parallel arrays: writes the next attempt to take each amount
-- from the card of its user, for apply_charges (kind charge: subscriptions, periods and their starts) and apply_orders (payment: orders, 0
-- and placed_at), which have claimed the users. The job payments makes the calls. Two attempts that may hold money break
-- one_payment_may_hold. The month of a charge must be there, since what is captured is written into it. Returns how many rows it wrote.
CREATE OR REPLACE FUNCTION plan_payments(
  p_kind text, p_sources bigint[], p_legs bigint[], p_times timestamptz[], p_amounts bigint[], p_token bigint, p_worker text, p_now timestamptz)
RETURNS bigint LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
  v_n bigint;
BEGIN
  IF p_kind = 'charge' AND EXISTS (SELECT FROM unnest(p_times) AS t
                                    WHERE NOT EXISTS (SELECT FROM months WHERE month = (date_trunc('month', t, 'UTC') AT TIME ZONE 'UTC')::date)) THEN
    RAISE check_violation USING MESSAGE = 'a period that a card is to pay has no partition of charges'; -- as an INSERT there would say
  END IF;
  INSERT INTO payments (kind, source, leg, attempt_no, user_id, source_at, amount_minor, currency, customer, method, due_at,
                        planned_fence, fence, worker, at)
  SELECT p_kind, d.source, d.leg,
         1 + coalesce((SELECT max(attempt_no) FROM payments AS p WHERE (p.source, p.kind, p.leg) = (d.source, p_kind, d.leg)), 0),
         u.user_id, d.at, d.amount, u.currency, u.card_customer, u.card_method, now(), p_token, p_token, p_worker, p_now
    FROM unnest(p_sources, p_legs, p_times, p_amounts) AS d (source, leg, at, amount)
    JOIN users AS u ON u.user_id = CASE p_kind WHEN 'charge' THEN (SELECT user_id FROM subscriptions WHERE subscription_id = d.source)
                                               ELSE (SELECT user_id FROM orders WHERE order_id = d.source) END;
  GET DIAGNOSTICS v_n = ROW_COUNT;
  RETURN v_n;
END $$;
COMMENT ON FUNCTION plan_payments IS 'Writes the next attempt for each period or order that a card is to pay. Returns how many rows it wrote.';
REVOKE ALL ON FUNCTION plan_payments FROM PUBLIC;
