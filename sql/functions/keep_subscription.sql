-- keep_subscription(user, subscription): takes back an end that has not come. Returns true if there was one. A subscription that is
-- cancelled, or whose end has come, is not kept: a new one begins with subscribe.
CREATE OR REPLACE FUNCTION keep_subscription(p_user_id bigint, p_subscription_id bigint)
RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  v_sub subscriptions%ROWTYPE;
BEGIN
  PERFORM FROM users WHERE user_id = p_user_id FOR NO KEY UPDATE;
  SELECT * INTO v_sub FROM subscriptions WHERE subscription_id = p_subscription_id AND user_id = p_user_id;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'user % has no subscription %', p_user_id, p_subscription_id USING ERRCODE = 'LL002';
  END IF;
  IF v_sub.state = 'cancelled' OR v_sub.cancel_at <= clock_timestamp() THEN
    RAISE EXCEPTION 'subscription % has ended at %', p_subscription_id, v_sub.cancel_at USING ERRCODE = 'LL003';
  END IF;
  WITH given AS (
    UPDATE subscriptions SET cancel_at = NULL WHERE subscription_id = p_subscription_id AND cancel_at IS NOT NULL
    RETURNING *
  )
  INSERT INTO events (subscription_id, event, state, next_period_no, retries, next_due_at, cancel_at, user_id)
  SELECT subscription_id, 'cancel_set', state, next_period_no, retries, next_due_at, cancel_at, user_id FROM given;
  RETURN FOUND;
END $$;
COMMENT ON FUNCTION keep_subscription IS
  'Takes back an end that has not come; false: none was set. Errors: LL002 the user has no such subscription, LL003 it has ended.';
REVOKE ALL ON FUNCTION keep_subscription FROM PUBLIC;
GRANT EXECUTE ON FUNCTION keep_subscription TO ledgerlock_shop, ledgerlock_support;
