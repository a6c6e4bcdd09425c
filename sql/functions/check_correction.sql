-- check_correction(key, reason): refuses a key without 1 to 255 characters and a reason that says nothing.
CREATE OR REPLACE FUNCTION check_correction(p_idempotency_key text, p_reason text)
RETURNS void LANGUAGE plpgsql IMMUTABLE SET search_path FROM CURRENT AS $$
BEGIN
  IF coalesce(p_idempotency_key, '') = '' OR length(p_idempotency_key) > 255 THEN
    RAISE EXCEPTION 'idempotency key must have 1 to 255 characters' USING ERRCODE = 'LL002';
  END IF;
  IF p_reason IS NULL OR p_reason !~ '[^[:space:]]' OR length(p_reason) > 1000 THEN
    RAISE EXCEPTION 'a correction needs a reason, of at most 1000 characters' USING ERRCODE = 'LL002';
  END IF;
END $$;
COMMENT ON FUNCTION check_correction IS 'Refuses a bad key or an empty reason. Errors: LL002 bad argument.';
REVOKE ALL ON FUNCTION check_correction FROM PUBLIC;
