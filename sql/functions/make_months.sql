-- make_months(from, to): makes the partitions of the months, in UTC, from the one of `from` to the one of `to` that are not
-- there yet. Returns how many months it made. A month that is closed, or lies before one, is not made again.
-- A partition is made beside its table and attached, so that nobody who writes is blocked; another make_months waits.
-- On a node of a Citus cluster the coordinator makes them, in a transaction of its own.
CREATE OR REPLACE FUNCTION make_months(p_from timestamptz, p_to timestamptz)
RETURNS integer LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET lock_timeout = '2s' SET timezone = 'UTC' SET datestyle = 'ISO, MDY' AS $$
DECLARE
  v_month date;
  v_made  integer := 0;
  v_told  record;
BEGIN
  IF p_from IS NULL OR p_to IS NULL OR NOT isfinite(p_from) OR NOT isfinite(p_to) OR p_to > p_from + interval '100 years' THEN
    RAISE EXCEPTION 'months are made between two finite times, at most 100 years apart' USING ERRCODE = 'LL002';
  END IF;
  IF NOT EXISTS (SELECT date_trunc('month', m)::date FROM generate_series(date_trunc('month', p_from), p_to, interval '1 month') AS m
                 EXCEPT SELECT month FROM months) THEN
    RETURN 0;
  END IF;
  IF to_regclass('pg_catalog.pg_dist_local_group') IS NOT NULL THEN
    IF (SELECT groupid FROM pg_dist_local_group) <> 0 AND EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = 'months'::regclass) THEN
      SELECT success, result INTO STRICT v_told
        FROM run_command_on_coordinator(format('SELECT %I.make_months(%L, %L)', current_schema(), p_from, p_to));
      IF NOT v_told.success THEN
        RAISE EXCEPTION 'the coordinator made no months: %', v_told.result USING ERRCODE = 'lock_not_available';
      END IF;
      RETURN v_told.result::integer;
    END IF;
    PERFORM set_config('citus.enable_unsafe_triggers', 'on', true); -- a partition has one of its own
  END IF;
  LOCK TABLE months IN SHARE ROW EXCLUSIVE MODE; -- which no client can take, unlike an advisory lock
  FOR v_month IN SELECT m::date FROM generate_series(date_trunc('month', p_from), p_to, interval '1 month') AS m
                 EXCEPT SELECT month FROM months ORDER BY 1 LOOP
    IF v_month < first_open() THEN
      RAISE EXCEPTION 'the month % is closed', to_char(v_month, 'YYYY-MM') USING ERRCODE = 'LL004',
        HINT = 'A correction of a closed month is a new entry in an open one.';
    END IF;
    INSERT INTO months (month) VALUES (v_month);
    PERFORM make_partition('charges', v_month);
    v_made := v_made + 1;
  END LOOP;
  RETURN v_made;
END $$;
COMMENT ON FUNCTION make_months IS
  'Makes the partitions of months that are not there yet. Errors: LL002 bad argument, LL004 the month is closed.';
REVOKE ALL ON FUNCTION make_months FROM PUBLIC;
