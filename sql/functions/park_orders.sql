-- park_orders(ids, token, worker, why): parks orders that cannot be worked for a reason of their own, and journals each,
-- also in lock_incidents. A parked row is not pulled until a person releases it. Returns the ids that this call parked.
CREATE OR REPLACE FUNCTION park_orders(p_ids bigint[], p_token bigint, p_worker text, p_why text)
RETURNS SETOF bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
WITH parked AS (
  UPDATE orders AS s
     SET state = 'parked'
    FROM unnest($1::bigint[]) AS asked (id)
   CROSS JOIN LATERAL (SELECT ctid AS place FROM orders WHERE order_id = asked.id
                       OFFSET 0) AS found -- OFFSET 0: by key, also with wrong statistics
   WHERE s.order_id = asked.id
     AND s.ctid = found.place
     AND s.state = 'pending'
  RETURNING s.*
), journaled AS (
  INSERT INTO events (order_id, event, state, user_id, token, worker)
  SELECT order_id, 'parked', state, user_id, $2::bigint, $3::text FROM parked
), told AS (
  INSERT INTO lock_incidents (resource, token, worker, kind, phase, detail)
  SELECT 'order:' || order_id, $2::bigint, $3::text, 'parked', 'apply', $4::text FROM parked
)
SELECT order_id FROM parked;
END $$;
COMMENT ON FUNCTION park_orders IS
  'Takes orders out of the work until a person releases them, and journals it.';
REVOKE ALL ON FUNCTION park_orders FROM PUBLIC;
GRANT EXECUTE ON FUNCTION park_orders TO ledgerlock_worker;
