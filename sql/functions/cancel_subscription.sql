-- cancel_subscription(subscription, at): cancels at the end of the period that is running at `at`.
-- Returns the instant from which nothing is charged any more. Periods that have begun are still charged, also
-- those that the workers have not come to yet. Calling it again changes nothing.
CREATE OR REPLACE FUNCTION ledgerlock.cancel_subscription(p_subscription_id bigint, p_at timestamptz DEFAULT now())
RETURNS timestamptz LANGUAGE plpgsql SECURITY DEFINER SET search_path = ledgerlock, pg_temp AS $$
DECLARE
  v_sub subscriptions%ROWTYPE;
  v_no  bigint;
BEGIN
  PERFORM FROM users JOIN subscriptions USING (user_id)
    WHERE subscription_id = p_subscription_id FOR NO KEY UPDATE OF users;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'subscription % does not exist', p_subscription_id USING ERRCODE = 'LL002';
  END IF;
  SELECT * INTO v_sub FROM subscriptions WHERE subscription_id = p_subscription_id;
  IF v_sub.cancel_at IS NOT NULL THEN
    RETURN v_sub.cancel_at;
  END IF;
  v_no := v_sub.next_period_no;
  WHILE period_start(v_sub.anchor_at, v_sub.unit, v_sub.every, v_no) <= p_at LOOP
    v_no := v_no + 1;
  END LOOP;
  UPDATE subscriptions SET cancel_at = period_start(anchor_at, unit, every, v_no)
   WHERE subscription_id = p_subscription_id
  RETURNING cancel_at INTO v_sub.cancel_at;
  RETURN v_sub.cancel_at;
END $$;
COMMENT ON FUNCTION ledgerlock.cancel_subscription IS
  'Cancels at period end and returns that instant. Errors: LL002 no such subscription.';
REVOKE ALL ON FUNCTION ledgerlock.cancel_subscription FROM PUBLIC;
GRANT EXECUTE ON FUNCTION ledgerlock.cancel_subscription TO ledgerlock_client;
