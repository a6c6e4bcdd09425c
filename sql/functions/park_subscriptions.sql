-- park_subscriptions(ids, token, worker, why): parks subscriptions that cannot be worked for a reason of their own, and journals each,
-- also in lock_incidents. A parked row is not pulled until a person releases it. Returns the ids that this call parked.
CREATE OR REPLACE FUNCTION park_subscriptions(p_ids bigint[], p_token bigint, p_worker text, p_why text)
RETURNS SETOF bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
WITH parked AS (
  UPDATE subscriptions AS s
     SET state = 'parked'
    FROM unnest($1::bigint[]) AS asked (id)
   CROSS JOIN LATERAL (SELECT ctid AS place FROM subscriptions WHERE subscription_id = asked.id
                       OFFSET 0) AS found -- OFFSET 0: by key, also with wrong statistics
   WHERE s.subscription_id = asked.id
     AND s.ctid = found.place
     AND s.state IN ('active', 'past_due')
  RETURNING s.*
), journaled AS (
  INSERT INTO events (subscription_id, event, state, next_period_no, retries, next_due_at,
                      cancel_at, user_id, token, worker)
  SELECT subscription_id, 'parked', state, next_period_no, retries, next_due_at, cancel_at, user_id, $2::bigint, $3::text
    FROM parked
), told AS (
  INSERT INTO lock_incidents (resource, token, worker, kind, phase, detail)
  SELECT 'subscription:' || subscription_id, $2::bigint, $3::text, 'parked', 'apply', $4::text FROM parked
)
SELECT subscription_id FROM parked;
END $$;
COMMENT ON FUNCTION park_subscriptions IS
  'Takes subscriptions out of the work until a person releases them, and journals it.';
REVOKE ALL ON FUNCTION park_subscriptions FROM PUBLIC;
GRANT EXECUTE ON FUNCTION park_subscriptions TO ledgerlock_worker;
