-- absolve(job, item): a suspect that was worked alone, and whose worker lived, is none any more. What was set aside
-- meanwhile was not worked, whoever asked for it, and keeps its deaths for when it is given back.
-- Workers may delete nothing; this is the one row that they may clear.
CREATE OR REPLACE FUNCTION ledgerlock.absolve(p_job text, p_item bigint)
RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = ledgerlock, pg_temp AS $$
BEGIN
  DELETE FROM quarantine
   WHERE job = p_job AND item = p_item
     AND NOT EXISTS (SELECT FROM orders WHERE p_job = 'orders' AND order_id = p_item AND state = 'parked')
     AND NOT EXISTS (SELECT FROM subscriptions
                      WHERE p_job = 'billing' AND subscription_id = p_item AND state = 'parked');
END $$;
COMMENT ON FUNCTION ledgerlock.absolve IS
  'A suspect was worked alone and its worker lived: it is no suspect any more, unless it is set aside.';
REVOKE ALL ON FUNCTION ledgerlock.absolve FROM PUBLIC;
GRANT EXECUTE ON FUNCTION ledgerlock.absolve TO ledgerlock_worker;
