-- plan_payments(subscriptions, periods, starts, amounts, token, worker, now), in parallel arrays: writes the next attempt to take the
-- price of each period from the card of its user, for apply_charges, which has claimed the users. The job payments makes the calls.
-- Two attempts that may hold money break one_payment_may_hold. The month of the charge must be there, since what is captured is
-- written into it. Returns how many rows it wrote.
CREATE OR REPLACE FUNCTION plan_payments(
  p_subscription_ids bigint[], p_period_nos bigint[], p_starts timestamptz[], p_amounts bigint[], p_token bigint, p_worker text,
  p_now timestamptz)
RETURNS bigint LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
  v_n bigint;
BEGIN
  IF EXISTS (SELECT FROM unnest(p_starts) AS s WHERE NOT EXISTS (SELECT FROM months 
                                                                  WHERE month = (date_trunc('month', s, 'UTC') AT TIME ZONE 'UTC')::date)) THEN
    RAISE check_violation USING MESSAGE = 'a period that a card is to pay has no partition of charges'; -- as an INSERT there would say
  END IF;
  INSERT INTO payments (subscription_id, period_no, attempt_no, user_id, period_start, amount_minor, currency, customer, method, due_at,
                        planned_fence, fence, worker, at)
  SELECT d.id, d.no, 1 + coalesce((SELECT max(attempt_no) FROM payments WHERE subscription_id = d.id AND period_no = d.no), 0),
         s.user_id, d.starts, d.amount, s.currency, u.card_customer, u.card_method, now(), p_token, p_token, p_worker, p_now
    FROM unnest(p_subscription_ids, p_period_nos, p_starts, p_amounts) AS d (id, no, starts, amount)
    JOIN subscriptions AS s ON s.subscription_id = d.id
    JOIN users AS u ON u.user_id = s.user_id;
  GET DIAGNOSTICS v_n = ROW_COUNT;
  RETURN v_n;
END $$;
COMMENT ON FUNCTION plan_payments IS 'Writes the next attempt for each period that a card is to pay. Returns how many rows it wrote.';
REVOKE ALL ON FUNCTION plan_payments FROM PUBLIC;
