-- release_subscriptions(ids): a person gives parked subscriptions back to the workers. Returns the
-- ids that were parked; each is journaled in lock_incidents. Parked rows were served, so every open period is charged.
CREATE OR REPLACE FUNCTION release_subscriptions(p_ids bigint[])
RETURNS SETOF bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  v_user_id bigint;
  v_id      bigint;
BEGIN
  FOR v_user_id, v_id IN SELECT user_id, subscription_id FROM subscriptions
                          WHERE subscription_id = ANY (p_ids) AND state = 'parked'
                          ORDER BY user_id, subscription_id LOOP
    CONTINUE WHEN NOT resume_subscription(v_user_id, v_id, 'bill_all');
    INSERT INTO lock_incidents (resource, token, worker, kind, phase, detail)
    VALUES ('subscription:' || v_id, 0, 'operator', 'resumed', 'hand', 'ledgerlock parked release');
    RETURN NEXT v_id;
  END LOOP;
END $$;
COMMENT ON FUNCTION release_subscriptions IS 'Gives parked subscriptions back to the workers, and journals it.';
REVOKE ALL ON FUNCTION release_subscriptions FROM PUBLIC;
GRANT EXECUTE ON FUNCTION release_subscriptions TO ledgerlock_support;
