-- release_parked(kind, id): a person gives a parked subscription or order back to the workers, who work it alone and
-- with a clean count. Returns whether it was parked.
CREATE OR REPLACE FUNCTION ledgerlock.release_parked(p_kind text, p_id bigint)
RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER SET search_path = ledgerlock, pg_temp AS $$
DECLARE
  v_done boolean := false;
BEGIN
  IF p_kind = 'order' THEN
    v_done := resume_order(p_id);
  ELSIF p_kind = 'subscription' AND
        EXISTS (SELECT FROM subscriptions WHERE subscription_id = p_id AND state = 'parked') THEN
    v_done := resume_subscription(p_id);
  END IF;
  IF v_done THEN
    UPDATE quarantine SET crashes = 0
     WHERE job = CASE p_kind WHEN 'order' THEN 'orders' ELSE 'billing' END AND item = p_id;
  END IF;
  RETURN v_done;
END $$;
COMMENT ON FUNCTION ledgerlock.release_parked IS
  'Gives a parked subscription or order back to the workers, with a clean count of crashes.';
REVOKE ALL ON FUNCTION ledgerlock.release_parked FROM PUBLIC;
GRANT EXECUTE ON FUNCTION ledgerlock.release_parked TO ledgerlock_worker;
