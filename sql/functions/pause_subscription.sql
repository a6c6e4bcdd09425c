-- pause_subscription(user, subscription, periods, from_period): leaves out the next periods that were not tried yet, begun or
-- not: each gets a row of charges in state skipped. from_period names the first of them, which subscriptions_of tells, so that a
-- call whose answer was lost can be made again: it is answered as the first was. Returns the time from which the subscription is
-- charged again.
CREATE OR REPLACE FUNCTION pause_subscription(
  p_user_id bigint, p_subscription_id bigint, p_periods bigint, p_from_period bigint)
RETURNS timestamptz LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  v_sub subscriptions%ROWTYPE;
BEGIN
  IF p_periods IS NULL OR p_periods NOT BETWEEN 1 AND 1000 THEN
    RAISE EXCEPTION 'a pause has 1 to 1000 periods' USING ERRCODE = 'LL002';
  END IF;
  PERFORM FROM users WHERE user_id = p_user_id FOR NO KEY UPDATE;
  SELECT * INTO v_sub FROM subscriptions WHERE subscription_id = p_subscription_id AND user_id = p_user_id;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'user % has no subscription %', p_user_id, p_subscription_id USING ERRCODE = 'LL002';
  END IF;
  IF p_from_period <= v_sub.next_period_no
     AND (SELECT count(*) FROM charges WHERE subscription_id = p_subscription_id AND state = 'skipped'
         AND period_no BETWEEN p_from_period AND p_from_period + p_periods - 1) = p_periods THEN
    RETURN period_start(v_sub.anchor_at, v_sub.unit, v_sub.every, p_from_period + p_periods);
  END IF;
  IF p_from_period IS DISTINCT FROM v_sub.next_period_no THEN
    RAISE EXCEPTION 'the next period of subscription % is %, not %', p_subscription_id, v_sub.next_period_no, p_from_period
      USING ERRCODE = 'LL002';
  END IF;
  IF v_sub.state <> 'active' OR v_sub.retries > 0
     OR period_start(v_sub.anchor_at, v_sub.unit, v_sub.every, p_from_period + p_periods - 1) >= v_sub.cancel_at THEN
    RAISE EXCEPTION 'subscription % is %, and ends %', p_subscription_id, v_sub.state, coalesce(v_sub.cancel_at::text, 'never')
      USING ERRCODE = 'LL003', DETAIL = 'Only periods of an active subscription that are before its end can be skipped.';
  END IF;
  IF period_start(v_sub.anchor_at, v_sub.unit, v_sub.every, p_from_period + p_periods - 1) > clock_timestamp() + interval '5 years' THEN
    RAISE EXCEPTION 'a pause skips no period that begins in more than five years' USING ERRCODE = 'LL002';
  END IF;
  PERFORM make_months(m, m) FROM (SELECT DISTINCT date_trunc('month', period_start(v_sub.anchor_at, v_sub.unit, v_sub.every, no), 'UTC')
                                    FROM generate_series(p_from_period, p_from_period + p_periods - 1) AS no) AS missing (m)
   WHERE NOT EXISTS (SELECT FROM months WHERE month = (m AT TIME ZONE 'UTC')::date);
  UPDATE subscriptions
     SET next_period_no = p_from_period + p_periods, next_due_at = period_start(anchor_at, unit, every, p_from_period + p_periods)
   WHERE subscription_id = p_subscription_id
  RETURNING * INTO v_sub;
  INSERT INTO charges (subscription_id, period_no, user_id, period_start, period_end,
                       amount_minor, state, tries, fence, worker, charged_at)
  SELECT p_subscription_id, no, p_user_id, period_start(v_sub.anchor_at, v_sub.unit, v_sub.every, no),
         period_start(v_sub.anchor_at, v_sub.unit, v_sub.every, no + 1),
         cost_of_periods(p_subscription_id, no, no, v_sub.trial_periods, v_sub.terms_from_no, v_sub.amount_minor),
         'skipped', 0, 0, session_user, now()
    FROM generate_series(p_from_period, p_from_period + p_periods - 1) AS no;
  INSERT INTO events (subscription_id, event, state, next_period_no, retries, next_due_at, cancel_at, user_id, from_period)
  VALUES (p_subscription_id, 'skipped', v_sub.state, v_sub.next_period_no, v_sub.retries, v_sub.next_due_at, v_sub.cancel_at, p_user_id,
          p_from_period);
  RETURN v_sub.next_due_at;
END $$;
COMMENT ON FUNCTION pause_subscription IS
  'Skips whole periods and returns when charging begins again. Errors: LL002 bad argument; LL003 not active, or over before that.';
REVOKE ALL ON FUNCTION pause_subscription FROM PUBLIC;
GRANT EXECUTE ON FUNCTION pause_subscription TO ledgerlock_shop, ledgerlock_support;
