-- keep_months(now, ahead, ms): makes the months that a pool may write into: from now on for the months ahead, and, for what is
-- due and not worked yet, the month of each row and the eleven behind it, for its periods to come. Returns how many months
-- it made. Of those that are missing it makes at least one, and begins no other after ms milliseconds: whoever calls it
-- commits, and calls again until it made none. A pool does so at its start and once an hour, and a worker when a partition is
-- missing. A worker makes no months without limit by it: none is made more than two months ahead of the clock, and none that
-- is before all months and all that is due.
CREATE OR REPLACE FUNCTION keep_months(p_now timestamptz, p_ahead integer, p_ms bigint)
RETURNS integer LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET timezone = 'UTC' AS $$
DECLARE
  v_begun  timestamptz := clock_timestamp();
  v_now    timestamptz := coalesce(p_now, now());
  v_from   timestamptz := first_open();
  v_first  timestamptz := (SELECT min(month) FROM months);
  v_due    timestamptz;
  v_ahead  timestamptz[] := '{}';
  v_behind timestamptz[] := '{}';
  v_made   integer := 0;
BEGIN
  IF (p_ahead BETWEEN 0 AND 2 AND v_now <= v_begun + interval '1 day' AND p_ms >= 0) IS NOT TRUE THEN
    RAISE EXCEPTION 'months are made for at most 2 months ahead of a time that is not to come' USING ERRCODE = 'LL002';
  END IF;
  LOOP -- the oldest of each shard behind the months that were seen: the index of due subscriptions is never read through
    SELECT min(s.next_due_at) INTO v_due
      FROM generate_series(0, 1023) AS g (n),
           LATERAL (SELECT next_due_at FROM subscriptions
                     WHERE shard = g.n::smallint AND state IN ('active', 'past_due') AND next_due_at >= v_from
                     ORDER BY next_due_at LIMIT 1) AS s;
    EXIT WHEN v_due IS NULL OR v_due > v_now;
    v_behind := v_behind || ARRAY(SELECT generate_series(date_trunc('month', v_due), least(v_due + interval '11 months', v_now), '1 month'));
    v_first := least(v_first, v_due);
    v_from := date_trunc('month', v_due) + interval '12 months';
  END LOOP;
  IF v_now >= v_first THEN -- a pool whose now is before all of these writes nothing
    v_now := greatest(v_now, first_open());
    v_ahead := ARRAY(SELECT generate_series(date_trunc('month', v_now), v_now + p_ahead * interval '1 month', '1 month'));
  END IF;
  FOR v_due IN SELECT month FROM unnest(v_ahead || v_behind) WITH ORDINALITY AS wanted (month, n) ORDER BY n LOOP
    v_made := v_made + make_months(v_due, v_due);
    EXIT WHEN v_made > 0 AND clock_timestamp() > v_begun + p_ms * interval '1 millisecond';
  END LOOP;
  RETURN v_made;
END $$;
COMMENT ON FUNCTION keep_months IS
  'Makes some of the months that a pool may write into: where something is due, and ahead of now. Errors: LL002 bad argument.';
REVOKE ALL ON FUNCTION keep_months FROM PUBLIC;
GRANT EXECUTE ON FUNCTION keep_months TO ledgerlock_worker;
