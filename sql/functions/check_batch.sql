-- check_batch(token, now): refuses what no worker may give: a token that is none or that would keep every later batch away
-- from the rows that carry it, and a time to come, in which nothing is due yet. apply_charges and apply_orders call it.
CREATE OR REPLACE FUNCTION check_batch(p_token bigint, p_now timestamptz)
RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
  IF p_token IS NULL OR p_token NOT BETWEEN 1 AND 9006099743113215 THEN -- below FENCE_END of worker/batch/batch.h
    RAISE EXCEPTION 'token % is none that a row may carry', p_token USING ERRCODE = 'LL002';
  END IF;
  IF p_now > now() THEN
    RAISE EXCEPTION 'now may not be later than the clock of the database: %', p_now USING ERRCODE = 'LL002';
  END IF;
END $$;
COMMENT ON FUNCTION check_batch IS
  'Refuses a token that no row may carry, and a time to come. Errors: LL002 bad argument.';
REVOKE ALL ON FUNCTION check_batch FROM PUBLIC;
