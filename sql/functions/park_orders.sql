-- park_orders(ids, token, worker, why): parks orders that cannot be worked for a reason of their own, and journals each,
-- also in lock_incidents. A parked row is not pulled until a person releases it. Returns the ids that this call parked.
CREATE OR REPLACE FUNCTION park_orders(p_ids bigint[], p_token bigint, p_worker text, p_why text)
RETURNS SETOF bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
#variable_conflict use_column
DECLARE
  v_ids bigint[];
BEGIN
  WITH parked AS (
    UPDATE orders SET state = 'parked' WHERE order_id = ANY ($1) AND state = 'pending' RETURNING order_id
  )
  SELECT array_agg(order_id) INTO v_ids FROM parked;
  INSERT INTO events (order_id, event, state, user_id, token, worker)
  SELECT order_id, 'parked', state, user_id, $2, $3 FROM orders WHERE order_id = ANY (v_ids);
  INSERT INTO lock_incidents (resource, token, worker, kind, phase, detail)
  SELECT 'order:' || id, $2, $3, 'parked', 'apply', $4 FROM unnest(v_ids) AS id;
  RETURN QUERY SELECT unnest(v_ids);
END $$;
COMMENT ON FUNCTION park_orders IS
  'Takes orders out of the work until a person releases them, and journals it.';
REVOKE ALL ON FUNCTION park_orders FROM PUBLIC;
GRANT EXECUTE ON FUNCTION park_orders TO ledgerlock_worker;
