-- check_limit(limit): refuses a length of a page that is none.
CREATE OR REPLACE FUNCTION check_limit(p_limit bigint)
RETURNS void LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  IF (p_limit BETWEEN 1 AND 1000) IS NOT TRUE THEN
    RAISE EXCEPTION 'a limit is 1 to 1000 rows' USING ERRCODE = 'LL002';
  END IF;
END $$;
COMMENT ON FUNCTION check_limit IS 'Refuses a length of a page that is not 1 to 1000. Errors: LL002 bad argument.';
REVOKE ALL ON FUNCTION check_limit FROM PUBLIC;
