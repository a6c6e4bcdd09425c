-- release_rows(job, ids): a person gives parked rows of the job back to the workers. Returns the ids that were parked; each is
-- journaled in lock_incidents. A parked subscription was served, so every open period of it is charged; a payment is asked for again under the same key.
CREATE OR REPLACE FUNCTION release_rows(p_job text, p_ids bigint[])
RETURNS SETOF bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  v_item    text := CASE p_job WHEN 'billing' THEN 'subscription:' WHEN 'orders' THEN 'order:' WHEN 'payments' THEN 'payment:' END;
  v_user_id bigint;
  v_id      bigint;
BEGIN
  IF p_job IS NULL OR p_job NOT IN ('billing', 'orders', 'payments') THEN
    RAISE EXCEPTION 'there is no job %', p_job USING ERRCODE = 'LL002';
  END IF;
  FOR v_user_id, v_id IN
    SELECT user_id, subscription_id FROM subscriptions
     WHERE p_job = 'billing' AND subscription_id = ANY (p_ids) AND state = 'parked'
     UNION ALL
    SELECT user_id, order_id FROM orders WHERE p_job = 'orders' AND order_id = ANY (p_ids) AND state = 'parked'
     UNION ALL
    SELECT user_id, payment_id FROM payments WHERE p_job = 'payments' AND payment_id = ANY (p_ids) AND state = 'parked'
     ORDER BY 1, 2
  LOOP
    CONTINUE WHEN NOT CASE p_job WHEN 'billing' THEN resume_subscription(v_user_id, v_id, 'bill_all')
                                 WHEN 'orders' THEN resume_order(v_user_id, v_id) ELSE resume_payment(v_user_id, v_id) END;
    INSERT INTO lock_incidents (resource, token, worker, kind, phase, detail)
    VALUES (v_item || v_id, 0, 'operator', 'resumed', 'hand', 'ledgerlock parked release');
    RETURN NEXT v_id;
  END LOOP;
END $$;
COMMENT ON FUNCTION release_rows IS 'Gives parked rows of a job back to the workers, and journals it. Errors: LL002 there is no such job.';
REVOKE ALL ON FUNCTION release_rows FROM PUBLIC;
GRANT EXECUTE ON FUNCTION release_rows TO ledgerlock_support;
