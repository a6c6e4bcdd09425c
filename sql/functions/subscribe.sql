-- subscribe(user, plan, amount, currency, unit, every, anchor, trial_periods, key): makes a subscription, once per (user, key).
-- Returns it. amount 0 is a free plan; the first trial_periods are free, whatever the terms. The anchor, where period 0
-- begins, is at most a day before now() and a year after it. The same key with anything else is an error (SQLSTATE LL001),
-- and so is a second subscription of the user to the same plan from the same anchor.
CREATE OR REPLACE FUNCTION subscribe(
  p_user_id bigint, p_plan text, p_amount_minor bigint, p_currency text, p_unit text, p_every integer, p_anchor_at timestamptz,
  p_trial_periods bigint, p_idempotency_key text)
RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  v_user users%ROWTYPE;
  v_sub  subscriptions%ROWTYPE;
  v_id   bigint;
BEGIN
  IF coalesce(p_idempotency_key, '') = '' OR length(p_idempotency_key) > 255 OR coalesce(p_plan, '') = '' OR length(p_plan) > 255 THEN
    RAISE EXCEPTION 'plan and idempotency key must have 1 to 255 characters' USING ERRCODE = 'LL002';
  END IF;
  IF coalesce(p_unit, '') NOT IN ('day', 'week', 'month', 'year') OR p_every IS NULL OR p_every NOT BETWEEN 1 AND 1000
     OR p_amount_minor IS NULL OR p_amount_minor < 0 OR p_trial_periods IS NULL OR p_trial_periods NOT BETWEEN 0 AND 1000 THEN
    RAISE EXCEPTION 'an interval is 1 to 1000 days, weeks, months or years, an amount is from 0, a trial has 0 to 1000 periods'
      USING ERRCODE = 'LL002';
  END IF;
  SELECT * INTO v_user FROM users WHERE user_id = p_user_id FOR NO KEY UPDATE;
  IF NOT FOUND OR v_user.currency IS DISTINCT FROM p_currency THEN
    RAISE EXCEPTION 'there is no user % with a wallet in %', p_user_id, p_currency USING ERRCODE = 'LL002';
  END IF;
  SELECT subscription_id INTO v_id FROM events
   WHERE user_id = p_user_id AND idempotency_key = p_idempotency_key AND event = 'subscribed';
  IF FOUND THEN
    SELECT * INTO v_sub FROM subscriptions WHERE subscription_id = v_id;
    IF (v_sub.plan, v_sub.amount_minor, v_sub.unit, v_sub.every, v_sub.anchor_at, v_sub.trial_periods::bigint)
       IS DISTINCT FROM (p_plan, p_amount_minor, p_unit, p_every, p_anchor_at, p_trial_periods) THEN
      RAISE EXCEPTION 'key "%" of user % was used for another subscription', p_idempotency_key, p_user_id USING ERRCODE = 'LL001';
    END IF;
    RETURN v_id;
  END IF;
  UPDATE subscriptions SET retries = retries WHERE false; -- locks the table as the INSERT: close-month waits for it, or its trigger sees that it closed
  PERFORM check_time('the anchor of a subscription', p_anchor_at, interval '24 hours', interval '1 year');
  IF v_user.closed_at IS NOT NULL THEN
    RAISE EXCEPTION 'the account of user % is closed', p_user_id USING ERRCODE = 'LL003';
  END IF;
  IF EXISTS (SELECT FROM contracts WHERE (user_id, plan, anchor_at) = (p_user_id, p_plan, p_anchor_at)) THEN
    RAISE EXCEPTION 'user % has plan "%" from % already', p_user_id, p_plan, p_anchor_at USING ERRCODE = 'LL001';
  END IF;
  INSERT INTO subscriptions (user_id, plan, amount_minor, currency, unit, every, anchor_at, next_due_at, trial_periods)
  VALUES (p_user_id, p_plan, p_amount_minor, p_currency, p_unit, p_every, p_anchor_at, p_anchor_at, p_trial_periods)
  RETURNING * INTO v_sub;
  INSERT INTO events (event, subscription_id, user_id, idempotency_key, state, next_period_no, retries, next_due_at)
  VALUES ('subscribed', v_sub.subscription_id, p_user_id, p_idempotency_key, v_sub.state, v_sub.next_period_no, v_sub.retries, v_sub.next_due_at);
  RETURN v_sub.subscription_id;
END $$;
COMMENT ON FUNCTION subscribe IS
  'Makes a subscription once per (user, key). Errors: LL001 key or contract used already, LL002 bad argument, LL003 the account is closed, LL004 the month is closed.';
REVOKE ALL ON FUNCTION subscribe FROM PUBLIC;
GRANT EXECUTE ON FUNCTION subscribe TO ledgerlock_shop, ledgerlock_support;
