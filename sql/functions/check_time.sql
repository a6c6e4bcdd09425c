-- check_time(name, at, back, ahead): refuses a time that a client gives unless it is finite and near to now: not more than
-- `back` before the clock, and not more than `ahead` and a second behind the clock. By the clock, since the now() of a transaction that
-- began long ago is old, an application reads its own time after that, and close-month relies on it that nobody writes into a month that has been over for a day. The owner of the
-- schema may give any finite time: a load of past orders is made with the client functions, too.
CREATE OR REPLACE FUNCTION check_time(p_name text, p_at timestamptz, p_back interval, p_ahead interval)
RETURNS void LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  IF p_at IS NULL OR NOT isfinite(p_at) THEN
    RAISE EXCEPTION '% must be a finite time', p_name USING ERRCODE = 'LL002';
  END IF;
  IF p_at NOT BETWEEN clock_timestamp() - p_back AND clock_timestamp() + p_ahead + interval '1 second' AND NOT pg_has_role(session_user, current_user, 'USAGE') THEN
    RAISE EXCEPTION '% is %, which is not near to now', p_name, p_at
      USING ERRCODE = 'LL002', DETAIL = format('Allowed: from %s before the clock to %s after it.', p_back, p_ahead);
  END IF;
END $$;
COMMENT ON FUNCTION check_time IS
  'Refuses a time that is not finite or not near to now. Errors: LL002 bad argument.';
REVOKE ALL ON FUNCTION check_time FROM PUBLIC;
