-- resume_subscription(user, subscription, policy, at): makes an unpaid or parked subscription due again at `at`.
-- forgive: the open periods that are over by `at` were not served and are waived; the one that is running is charged, and
-- is the first try of it unless it was declined before. `at` is at most a day before now() and not after it.
-- bill_all: every open period is charged, beginning with one more try of the first; `at`, when a declined one is tried again, may be 31 days
-- after now(). A subscription that was not tried yet is due from its start, so that a later `at` is refused.
-- Returns true if it was unpaid or parked.
CREATE OR REPLACE FUNCTION resume_subscription(
  p_user_id bigint, p_subscription_id bigint, p_policy text DEFAULT 'forgive', p_at timestamptz DEFAULT now())
RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  v_sub subscriptions%ROWTYPE;
  v_new subscriptions%ROWTYPE;
  v_to  bigint; -- the first period that stays open
BEGIN
  IF p_policy IS NULL OR p_policy NOT IN ('forgive', 'bill_all') THEN
    RAISE EXCEPTION 'the policy must be forgive or bill_all' USING ERRCODE = 'LL002';
  END IF;
  PERFORM check_time('the time of the next try', p_at, interval '24 hours',
                     CASE p_policy WHEN 'forgive' THEN interval '0' ELSE interval '31 days' END);
  PERFORM FROM users WHERE user_id = p_user_id FOR NO KEY UPDATE;
  SELECT * INTO v_sub FROM subscriptions WHERE subscription_id = p_subscription_id AND user_id = p_user_id;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'user % has no subscription %', p_user_id, p_subscription_id USING ERRCODE = 'LL002';
  END IF;
  IF p_policy = 'bill_all' AND v_sub.retries = 0 AND p_at > clock_timestamp() + interval '1 second' AND v_sub.state IN ('unpaid', 'parked') THEN
    RAISE EXCEPTION 'no period of subscription % was declined, so it is due from its start', p_subscription_id
      USING ERRCODE = 'LL002', HINT = 'Call it without a time.';
  END IF;
  v_to := v_sub.next_period_no;
  IF p_policy = 'forgive' THEN -- no period from cancel_at on is owed, so none of those is waived
    v_to := greatest(v_to, least(
      period_at(v_sub.anchor_at, v_sub.unit, v_sub.every, p_at),
      period_at(v_sub.anchor_at, v_sub.unit, v_sub.every, v_sub.cancel_at - interval '1 microsecond') + 1));
  END IF;
  PERFORM make_months(m, m) FROM (SELECT DISTINCT date_trunc('month', period_start(v_sub.anchor_at, v_sub.unit, v_sub.every, no), 'UTC')
                                    FROM generate_series(v_sub.next_period_no, v_to - 1) AS no) AS missing (m)
   WHERE NOT EXISTS (SELECT FROM months WHERE month = (m AT TIME ZONE 'UTC')::date);
  UPDATE subscriptions
     SET state = CASE WHEN retries > 0 AND v_to = next_period_no THEN 'past_due' ELSE 'active' END,
         next_due_at = CASE WHEN retries > 0 AND v_to = next_period_no
                              THEN greatest(p_at, period_start(anchor_at, unit, every, next_period_no))
                            ELSE period_start(anchor_at, unit, every, v_to) END,
         retries = CASE WHEN v_to = next_period_no THEN retries ELSE 0 END,
         next_period_no = v_to
   WHERE subscription_id = p_subscription_id AND state IN ('unpaid', 'parked')
  RETURNING * INTO v_new;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  IF v_to > v_sub.next_period_no THEN
    UPDATE charges
       SET state = 'waived', worker = session_user, charged_at = p_at
     WHERE subscription_id = p_subscription_id AND period_no = v_sub.next_period_no AND state = 'declined'
       AND period_start = period_start(v_sub.anchor_at, v_sub.unit, v_sub.every, v_sub.next_period_no);
  END IF;
  INSERT INTO charges (subscription_id, period_no, user_id, period_start, period_end,
                       amount_minor, state, tries, fence, worker, charged_at)
  SELECT p_subscription_id, no, p_user_id, period_start(v_sub.anchor_at, v_sub.unit, v_sub.every, no),
         period_start(v_sub.anchor_at, v_sub.unit, v_sub.every, no + 1),
         cost_of_periods(p_subscription_id, no, no, v_sub.trial_periods, v_sub.terms_from_no, v_sub.amount_minor),
         'waived', 0, 0, session_user, p_at
    FROM generate_series(v_sub.next_period_no + (v_sub.retries > 0)::int, v_to - 1) AS no;
  INSERT INTO events (subscription_id, event, state, next_period_no, retries, next_due_at, cancel_at, user_id, from_period, at)
  VALUES (p_subscription_id, CASE WHEN v_to > v_sub.next_period_no THEN 'waived' ELSE 'released' END, v_new.state, v_new.next_period_no,
          v_new.retries, v_new.next_due_at, v_new.cancel_at, p_user_id, CASE WHEN v_to > v_sub.next_period_no THEN v_sub.next_period_no END,
          p_at);
  RETURN true;
END $$;
COMMENT ON FUNCTION resume_subscription IS
  'unpaid or parked becomes due again. forgive (default) waives the periods that are over, bill_all charges them. Errors: LL002 bad argument.';
REVOKE ALL ON FUNCTION resume_subscription FROM PUBLIC;
GRANT EXECUTE ON FUNCTION resume_subscription TO ledgerlock_support;
