-- park_subscriptions(ids, token, worker, why): parks subscriptions that cannot be worked for a reason of their own, and journals each,
-- also in lock_incidents. A parked row is not pulled until a person releases it. Returns the ids that this call parked.
CREATE OR REPLACE FUNCTION park_subscriptions(p_ids bigint[], p_token bigint, p_worker text, p_why text)
RETURNS SETOF bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
#variable_conflict use_column
DECLARE
  v_ids bigint[];
BEGIN
  WITH parked AS (
    UPDATE subscriptions SET state = 'parked' WHERE subscription_id = ANY ($1) AND state IN ('active', 'past_due') RETURNING subscription_id
  )
  SELECT array_agg(subscription_id) INTO v_ids FROM parked;
  INSERT INTO events (subscription_id, event, state, next_period_no, retries, next_due_at, cancel_at, user_id, token, worker)
  SELECT subscription_id, 'parked', state, next_period_no, retries, next_due_at, cancel_at, user_id, $2, $3
    FROM subscriptions WHERE subscription_id = ANY (v_ids);
  INSERT INTO lock_incidents (resource, token, worker, kind, phase, detail)
  SELECT 'subscription:' || id, $2, $3, 'parked', 'apply', $4 FROM unnest(v_ids) AS id;
  RETURN QUERY SELECT unnest(v_ids);
END $$;
COMMENT ON FUNCTION park_subscriptions IS
  'Takes subscriptions out of the work until a person releases them, and journals it.';
REVOKE ALL ON FUNCTION park_subscriptions FROM PUBLIC;
GRANT EXECUTE ON FUNCTION park_subscriptions TO ledgerlock_worker;
