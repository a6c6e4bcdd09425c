-- resume_payment(user, payment): a parked attempt is looked up, and another one made if the gateway has nothing of it; an attempt of which
-- nobody was asked is asked for. Returns true if it was parked.
CREATE OR REPLACE FUNCTION resume_payment(p_user_id bigint, p_payment_id bigint)
RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  v_due timestamptz := now();
BEGIN
  PERFORM FROM users WHERE user_id = p_user_id FOR NO KEY UPDATE;
  UPDATE payments SET state = CASE calls WHEN 0 THEN 'planned' ELSE 'unknown' END, due_at = v_due, worker = session_user, text_hash = NULL,
                      calls = CASE calls WHEN 0 THEN 0 ELSE greatest(calls, 3) END -- payment_looks
   WHERE payment_id = p_payment_id AND user_id = p_user_id AND state = 'parked';
  RETURN FOUND;
END $$;
COMMENT ON FUNCTION resume_payment IS 'A parked payment is looked up, and made again if there is nothing of it. Returns true if it was parked. Errors: none of its own.';
REVOKE ALL ON FUNCTION resume_payment FROM PUBLIC;
