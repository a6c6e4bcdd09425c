-- check_batch(token, now): refuses what no worker may give: a token that is none, or one more than an hour ahead of the clock,
-- which would keep later batches away from the rows that carry it; and a time to come, in which nothing is due yet. A token is the
-- time of a server in microseconds, or one above a fence. A row with a fence further ahead waits for the clock (pool_refused_users).
-- apply_charges and apply_orders call it. And a cell that was moved to another node (check_home).
CREATE OR REPLACE FUNCTION check_batch(p_token bigint, p_now timestamptz)
RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
  PERFORM check_home();
  IF (p_token BETWEEN 1 AND (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + 3600000000) IS NOT TRUE THEN
    RAISE EXCEPTION 'token % is none, or more than an hour ahead of the clock (Redis keeps its last token in the key <prefix>!last: delete it if the clock of Redis was ahead once)', p_token USING ERRCODE = 'LL002';
  END IF;
  IF p_now > now() THEN
    RAISE EXCEPTION 'now may not be later than the clock of the database: %', p_now USING ERRCODE = 'LL002';
  END IF;
END $$;
COMMENT ON FUNCTION check_batch IS
  'Refuses a token that no row may carry, and a time to come. Errors: LL002 bad argument, 25006 the cell is on another node of a Citus cluster.';
REVOKE ALL ON FUNCTION check_batch FROM PUBLIC;
