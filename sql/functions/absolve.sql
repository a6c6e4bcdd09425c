-- absolve(job, item): a suspect that was worked alone, and whose worker lived, is none any more.
-- Workers may delete nothing; this is the one row that they may clear.
CREATE OR REPLACE FUNCTION ledgerlock.absolve(p_job text, p_item bigint)
RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = ledgerlock, pg_temp AS $$
BEGIN
  DELETE FROM quarantine WHERE job = p_job AND item = p_item;
END $$;
COMMENT ON FUNCTION ledgerlock.absolve IS
  'A suspect was worked alone and its worker lived: it is no suspect any more.';
REVOKE ALL ON FUNCTION ledgerlock.absolve FROM PUBLIC;
GRANT EXECUTE ON FUNCTION ledgerlock.absolve TO ledgerlock_worker;
