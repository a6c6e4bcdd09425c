-- resume_subscription(subscription, at): gives an unpaid or parked subscription one more try, now.
-- Returns whether there was anything to resume.
CREATE OR REPLACE FUNCTION ledgerlock.resume_subscription(
  p_subscription_id bigint, p_at timestamptz DEFAULT now())
RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER SET search_path = ledgerlock, pg_temp AS $$
BEGIN
  PERFORM FROM users JOIN subscriptions USING (user_id)
    WHERE subscription_id = p_subscription_id FOR NO KEY UPDATE OF users;
  UPDATE subscriptions
     SET state = CASE WHEN retries > 0 THEN 'past_due' ELSE 'active' END,
         next_due_at = CASE WHEN retries > 0 THEN p_at
                            ELSE period_start(anchor_at, unit, every, next_period_no) END
   WHERE subscription_id = p_subscription_id AND state IN ('unpaid', 'parked');
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  PERFORM announce_work();
  RETURN true;
END $$;
COMMENT ON FUNCTION ledgerlock.resume_subscription IS
  'unpaid or parked becomes due again: one more try of the period that was not paid.';
REVOKE ALL ON FUNCTION ledgerlock.resume_subscription FROM PUBLIC;
GRANT EXECUTE ON FUNCTION ledgerlock.resume_subscription TO ledgerlock_client;
