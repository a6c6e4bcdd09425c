-- cancel_subscription(subscription): cancels at the end of the last period that was charged.
-- Returns the instant from which nothing is charged any more. Calling it again changes nothing.
CREATE OR REPLACE FUNCTION ledgerlock.cancel_subscription(p_subscription_id bigint)
RETURNS timestamptz LANGUAGE plpgsql SECURITY DEFINER SET search_path = ledgerlock, pg_temp AS $$
DECLARE
  v_cancel_at timestamptz;
BEGIN
  PERFORM FROM users JOIN subscriptions USING (user_id)
    WHERE subscription_id = p_subscription_id FOR UPDATE OF users;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'subscription % does not exist', p_subscription_id USING ERRCODE = 'LL002';
  END IF;
  UPDATE subscriptions
     SET cancel_at = coalesce(cancel_at, period_start(anchor_at, unit, every, next_period_no))
   WHERE subscription_id = p_subscription_id
  RETURNING cancel_at INTO v_cancel_at;
  RETURN v_cancel_at;
END $$;
COMMENT ON FUNCTION ledgerlock.cancel_subscription IS
  'Cancels at period end and returns that instant. Errors: LL002 no such subscription.';
REVOKE ALL ON FUNCTION ledgerlock.cancel_subscription FROM PUBLIC;
GRANT EXECUTE ON FUNCTION ledgerlock.cancel_subscription TO ledgerlock_client;
