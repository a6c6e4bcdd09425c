-- park_rows(job, ids, token, worker, why): parks rows of the job that cannot be worked for a reason of their own, and journals each,
-- also in lock_incidents. A parked row is not pulled until a person releases it. Returns the ids that this call parked.
CREATE OR REPLACE FUNCTION park_rows(p_job text, p_ids bigint[], p_token bigint, p_worker text, p_why text)
RETURNS SETOF bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  v_ids bigint[];
BEGIN
  IF p_job IS NULL OR p_job NOT IN ('billing', 'orders', 'payments') THEN
    RAISE EXCEPTION 'there is no job %', p_job USING ERRCODE = 'LL002';
  END IF;
  IF p_job = 'billing' THEN
    WITH parked AS (
      UPDATE subscriptions SET state = 'parked' WHERE subscription_id = ANY (p_ids) AND state IN ('active', 'past_due')
      RETURNING subscription_id
    )
    SELECT array_agg(subscription_id) INTO v_ids FROM parked;
    INSERT INTO events (subscription_id, event, state, next_period_no, retries, next_due_at, cancel_at, user_id, token, worker)
    SELECT subscription_id, 'parked', state, next_period_no, retries, next_due_at, cancel_at, user_id, p_token, p_worker
      FROM subscriptions WHERE subscription_id = ANY (v_ids);
  ELSIF p_job = 'payments' THEN
    WITH parked AS (
      UPDATE payments SET state = 'parked', reason = p_why, worker = p_worker
       WHERE payment_id = ANY (p_ids) AND state IN ('planned', 'sent', 'unknown') RETURNING payment_id
    )
    SELECT array_agg(payment_id) INTO v_ids FROM parked;
  ELSE
    WITH parked AS (
      UPDATE orders SET state = 'parked' WHERE order_id = ANY (p_ids) AND state = 'pending' RETURNING order_id
    )
    SELECT array_agg(order_id) INTO v_ids FROM parked;
    INSERT INTO events (order_id, event, state, user_id, token, worker)
    SELECT order_id, 'parked', state, user_id, p_token, p_worker FROM orders WHERE order_id = ANY (v_ids);
  END IF;
  INSERT INTO lock_incidents (resource, token, worker, kind, phase, detail)
  SELECT CASE p_job WHEN 'billing' THEN 'subscription:' WHEN 'orders' THEN 'order:' ELSE 'payment:' END || id, p_token, p_worker, 'parked', 'apply', p_why
    FROM unnest(v_ids) AS id;
  RETURN QUERY SELECT unnest(v_ids);
END $$;
COMMENT ON FUNCTION park_rows IS
  'Takes rows of a job out of the work until a person releases them, and journals it. Errors: LL002 there is no such job.';
REVOKE ALL ON FUNCTION park_rows FROM PUBLIC;
GRANT EXECUTE ON FUNCTION park_rows TO ledgerlock_worker;
