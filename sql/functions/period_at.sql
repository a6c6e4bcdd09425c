-- period_at(anchor, unit, every, at): number of the period that is running at `at`, and -1 before the anchor.
CREATE OR REPLACE FUNCTION period_at(p_anchor timestamptz, p_unit text, p_every integer, p_at timestamptz)
RETURNS bigint LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path FROM CURRENT AS $$
DECLARE
  -- As many periods of the longest length as fit before p_at have begun by then; few more are left to count.
  v_no bigint := floor(extract(epoch FROM p_at - p_anchor) / p_every
                       / CASE p_unit WHEN 'day' THEN 86400 WHEN 'week' THEN 604800
                                     WHEN 'month' THEN 2678400 ELSE 31622400 END);
BEGIN
  v_no := greatest(v_no, -1);
  WHILE period_start(p_anchor, p_unit, p_every, v_no + 1) <= p_at LOOP
    v_no := v_no + 1;
  END LOOP;
  RETURN v_no;
END $$;
COMMENT ON FUNCTION period_at IS 'The number of the period that is running at a time; -1 before the first.';
REVOKE ALL ON FUNCTION period_at FROM PUBLIC;
