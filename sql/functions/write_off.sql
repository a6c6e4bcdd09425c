-- write_off(user, subscription, period, reason, key, at): gives up the declined period of a subscription that is past due or unpaid,
-- once per (subscription, key): nobody will pay it, and no money moves. The subscription is active again with the next period.
-- `at` is at most a day before now() and not after it. Returns the amount that was given up. The same key for another period is
-- an error (SQLSTATE LL001).
CREATE OR REPLACE FUNCTION write_off(
  p_user_id bigint, p_subscription_id bigint, p_period_no bigint, p_reason text, p_idempotency_key text, p_at timestamptz DEFAULT now())
RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  v_sub    subscriptions%ROWTYPE;
  v_starts timestamptz;
  v_amount bigint;
  v_period bigint;
BEGIN
  PERFORM check_correction(p_idempotency_key, p_reason);
  PERFORM FROM users WHERE user_id = p_user_id FOR NO KEY UPDATE;
  SELECT * INTO v_sub FROM subscriptions WHERE subscription_id = p_subscription_id AND user_id = p_user_id
     FOR NO KEY UPDATE; -- a worker parks it without the lock of its user
  IF NOT FOUND THEN
    RAISE EXCEPTION 'user % has no subscription %', p_user_id, p_subscription_id USING ERRCODE = 'LL002';
  END IF;
  SELECT from_period, amount_minor INTO v_period, v_amount FROM events
   WHERE subscription_id = p_subscription_id AND idempotency_key = p_idempotency_key AND event = 'written_off';
  IF FOUND THEN
    IF v_period IS DISTINCT FROM p_period_no THEN
      RAISE EXCEPTION 'key "%" of subscription % was used for period %', p_idempotency_key, p_subscription_id, v_period
        USING ERRCODE = 'LL001', HINT = 'Use a new key for a new write-off.';
    END IF;
    RETURN v_amount;
  END IF;
  PERFORM check_time('the time of a write-off', p_at, interval '24 hours', interval '0');
  v_starts := period_start(v_sub.anchor_at, v_sub.unit, v_sub.every, v_sub.next_period_no);
  IF v_sub.state NOT IN ('past_due', 'unpaid') OR v_sub.retries = 0 OR v_sub.next_period_no IS DISTINCT FROM p_period_no OR v_starts >= v_sub.cancel_at THEN
    RAISE EXCEPTION 'subscription % is %, and its period % is not declined and owed', p_subscription_id, v_sub.state, p_period_no
      USING ERRCODE = 'LL003';
  END IF;
  IF p_at < v_starts THEN
    RAISE EXCEPTION 'the time of a write-off is %, and the period begins at %', p_at, v_starts USING ERRCODE = 'LL002';
  END IF;
  UPDATE charges SET state = 'written_off', worker = session_user, charged_at = p_at
   WHERE subscription_id = p_subscription_id AND period_no = v_sub.next_period_no AND period_start = v_starts AND state = 'declined'
  RETURNING amount_minor INTO STRICT v_amount;
  WITH given AS (
    UPDATE subscriptions
       SET state = 'active', retries = 0, next_period_no = next_period_no + 1,
           next_due_at = period_start(anchor_at, unit, every, next_period_no + 1)
     WHERE subscription_id = p_subscription_id
    RETURNING *
  )
  INSERT INTO events (subscription_id, event, state, next_period_no, retries, next_due_at, cancel_at, user_id, from_period,
                      idempotency_key, amount_minor, reason, at)
  SELECT subscription_id, 'written_off', state, next_period_no, retries, next_due_at, cancel_at, user_id, next_period_no - 1,
         p_idempotency_key, v_amount, p_reason, p_at
    FROM given;
  RETURN v_amount;
END $$;
COMMENT ON FUNCTION write_off IS
  'Gives up the declined period of a subscription, and returns its amount. Errors: LL001 key used for another period, LL002 bad argument, LL003 the period is not declined.';
REVOKE ALL ON FUNCTION write_off FROM PUBLIC;
GRANT EXECUTE ON FUNCTION write_off TO ledgerlock_support;
