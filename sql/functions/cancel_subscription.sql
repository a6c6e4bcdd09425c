-- cancel_subscription(user, subscription, when, at): ends a subscription. Returns the time from which nothing is charged any more.
-- period_end: with the period that is running at `at`, at most a day before now() and ten years after it. Periods that have begun by `at`
-- are still charged, also those that no worker has charged yet; an `at` in the past gives up what began after it and is
-- not captured yet. If an end is set already the earlier of the two counts; keep_subscription takes one back that has not come.
-- now: the state is cancelled at once, and what is not captured is given up, also before an end that is still to come. Nothing that was
-- paid is given back here. While a card is asked for the next period, that one is charged or declined, and `now` is refused
-- (SQLSTATE LL003). A second call changes nothing.
CREATE OR REPLACE FUNCTION cancel_subscription(
  p_user_id bigint, p_subscription_id bigint, p_when text DEFAULT 'period_end', p_at timestamptz DEFAULT now())
RETURNS timestamptz LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  v_sub subscriptions%ROWTYPE;
  v_no  bigint; -- the first period that is not charged
BEGIN
  IF p_when IS NULL OR p_when NOT IN ('now', 'period_end') THEN
    RAISE EXCEPTION 'a subscription ends now or at period_end' USING ERRCODE = 'LL002';
  END IF;
  PERFORM FROM users WHERE user_id = p_user_id FOR NO KEY UPDATE;
  SELECT * INTO v_sub FROM subscriptions WHERE subscription_id = p_subscription_id AND user_id = p_user_id;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'user % has no subscription %', p_user_id, p_subscription_id USING ERRCODE = 'LL002';
  END IF;
  IF v_sub.state = 'cancelled' THEN
    RETURN v_sub.cancel_at;
  END IF;
  IF v_sub.state = 'paying' AND p_when = 'now' THEN -- money may be on its way, unless nobody was asked for it yet
    UPDATE payments SET state = 'void', reason = 'the subscription was cancelled', worker = session_user
     WHERE (source, kind, leg) = (p_subscription_id, 'charge', v_sub.next_period_no) AND state = 'planned';
    IF NOT FOUND THEN
      RAISE EXCEPTION 'a payment by card for period % of subscription % is not decided', v_sub.next_period_no, p_subscription_id
        USING ERRCODE = 'LL003', HINT = 'End it at period_end, or now when the payment is decided: ledgerlock explain subscription:' || p_subscription_id;
    END IF;
  END IF;
  v_no := v_sub.next_period_no + (v_sub.state = 'paying' AND p_when = 'period_end')::int;
  IF p_when = 'period_end' AND isfinite(p_at) THEN
    v_no := greatest(v_no, period_at(v_sub.anchor_at, v_sub.unit, v_sub.every, p_at) + 1);
    IF v_sub.cancel_at <= period_start(v_sub.anchor_at, v_sub.unit, v_sub.every, v_no) THEN
      RETURN v_sub.cancel_at;
    END IF;
  END IF;
  PERFORM check_time('the time of a cancellation', p_at, interval '24 hours', interval '10 years');
  WITH given AS (
    UPDATE subscriptions
       SET cancel_at = least(cancel_at, period_start(anchor_at, unit, every, v_no)),
           state = CASE p_when WHEN 'now' THEN 'cancelled' ELSE state END
     WHERE subscription_id = p_subscription_id
    RETURNING *
  )
  INSERT INTO events (subscription_id, event, state, next_period_no, retries, next_due_at, cancel_at,
                      user_id, at)
  SELECT subscription_id, CASE p_when WHEN 'now' THEN 'cancelled' ELSE 'cancel_set' END, state, next_period_no, retries,
         next_due_at, cancel_at, user_id, p_at
    FROM given
  RETURNING cancel_at INTO v_sub.cancel_at;
  RETURN v_sub.cancel_at;
END $$;
COMMENT ON FUNCTION cancel_subscription IS
  'Cancels now or at period end and returns from when nothing is charged. Errors: LL002 the user has no such subscription, or bad argument; LL003 a payment by card is not decided.';
REVOKE ALL ON FUNCTION cancel_subscription FROM PUBLIC;
GRANT EXECUTE ON FUNCTION cancel_subscription TO ledgerlock_shop, ledgerlock_support;
