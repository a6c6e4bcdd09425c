-- next_token(floor): a token that no other batch gets, for a batch that holds no Redis lock: above the last one, above the
-- floor, and not below the clock in microseconds. The token never falls, and a floor an hour ahead of the clock is refused.
-- The function is called in a transaction of its own, to which it gives synchronous_commit off: the effects that carry the token are
-- committed after it, so they cannot survive a crash that the token does not survive.
CREATE OR REPLACE FUNCTION next_token(p_floor bigint)
RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  v_token bigint;
  v_clock bigint := extract(epoch FROM clock_timestamp()) * 1000000;
BEGIN
  UPDATE lock_token
     SET last = greatest(last + 1, v_clock, p_floor + 1)
   WHERE p_floor BETWEEN 0 AND v_clock + 3600000000 -- as check_batch
  RETURNING last INTO v_token;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'floor % is none, or more than an hour ahead of the clock', p_floor USING ERRCODE = 'LL002';
  END IF;
  PERFORM set_config('synchronous_commit', 'off', true);
  RETURN v_token;
END $$;
COMMENT ON FUNCTION next_token IS
  'The next token of a batch that holds no Redis lock. Errors: LL002 bad argument.';
REVOKE ALL ON FUNCTION next_token FROM PUBLIC;
GRANT EXECUTE ON FUNCTION next_token TO ledgerlock_worker;
