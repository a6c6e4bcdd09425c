-- keep_months(now, ahead): makes every month that a pool may write into: from now on for the months ahead, and, for what is
-- due and not worked yet, the month of each row and the eleven behind it, for its periods to come. Returns how many months
-- it made. Every pool calls it at its start, and when a partition is missing.
CREATE OR REPLACE FUNCTION keep_months(p_now timestamptz, p_ahead integer)
RETURNS integer LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET timezone = 'UTC' AS $$
DECLARE
  v_now   timestamptz := coalesce(p_now, now());
  v_from  timestamptz := first_open();
  v_due   timestamptz;
  v_made  integer;
BEGIN
  IF p_ahead IS NULL OR p_ahead NOT BETWEEN 0 AND 120 THEN
    RAISE EXCEPTION 'months are made for at most 120 months ahead' USING ERRCODE = 'LL002';
  END IF;
  v_made := make_months(greatest(v_now, v_from), greatest(v_now, v_from) + p_ahead * interval '1 month');
  LOOP -- the oldest of each shard behind the months that were seen: the index of due subscriptions is never read through
    SELECT min(s.next_due_at) INTO v_due
      FROM generate_series(0, 1023) AS g (n),
           LATERAL (SELECT next_due_at FROM subscriptions
                     WHERE shard = g.n::smallint AND state IN ('active', 'past_due') AND next_due_at >= v_from
                     ORDER BY next_due_at LIMIT 1) AS s;
    EXIT WHEN v_due IS NULL OR v_due > v_now;
    v_made := v_made + make_months(v_due, least(v_due + interval '11 months', v_now));
    v_from := date_trunc('month', v_due) + interval '12 months';
  END LOOP;
  FOR v_due IN SELECT DISTINCT date_trunc('month', placed_at) FROM orders
                WHERE state = 'pending' AND placed_at <= v_now AND placed_at >= (SELECT first_open()) LOOP
    v_made := v_made + make_months(v_due, v_due);
  END LOOP;
  RETURN v_made;
END $$;
COMMENT ON FUNCTION keep_months IS
  'Makes the months that a pool may write into: where something is due, and ahead of now. Errors: LL002 bad argument.';
REVOKE ALL ON FUNCTION keep_months FROM PUBLIC;
GRANT EXECUTE ON FUNCTION keep_months TO ledgerlock_worker;
