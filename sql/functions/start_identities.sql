-- start_identities(cell, gap): numbers of rows begin at cell * 2^40 + 1, so those of several databases never meet and can be brought
-- together. Returns how many columns it set. For migrate --cell, before the first row: later it refuses. On a node of a Citus cluster,
-- which has a range of its own for each sequence, it gives that range up, and numbers go on behind those of the rows; with a gap also
-- where the cell is not yet: a cell that moves here leaves out that many, which sessions at its node may still have taken.
CREATE OR REPLACE FUNCTION start_identities(p_cell bigint, p_gap bigint DEFAULT 0)
RETURNS integer LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
  v_start bigint := (p_cell << 40) + 1;
  v_col   record;
  v_last  bigint;
  v_set   integer := 0;
BEGIN
  IF (p_cell BETWEEN 0 AND 8191 AND p_gap >= 0) IS NOT TRUE THEN -- the numbers stay below 2^53, which JSON keeps exactly
    RAISE EXCEPTION 'a cell is a number from 0 to 8191' USING ERRCODE = 'LL002';
  END IF;
  IF p_gap = 0 AND is_away() THEN
    RETURN 0;
  END IF;
  FOR v_col IN SELECT c.relname, a.attname, s.seqrelid::regclass AS seq, s.seqstart, s.seqmax, pg_sequence_last_value(s.seqrelid) AS last
                 FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attidentity <> ''
                 JOIN pg_sequence AS s ON s.seqrelid = pg_get_serial_sequence(c.oid::regclass::text, a.attname)::regclass
                WHERE c.relnamespace = current_schema()::regnamespace
                  AND (s.seqstart <> v_start OR s.seqmax < 9223372036854775807 OR p_gap > 0) LOOP
    EXECUTE format('SELECT max(%1$I) FROM %2$I WHERE %1$I >= $1 AND %1$I < $1 + (1::bigint << 40)', v_col.attname, v_col.relname)
       INTO v_last USING v_start; -- a row that the schema begins with has the number 1
    IF v_col.last >> 40 = p_cell THEN
      v_last := greatest(v_last, v_col.last);
    ELSIF v_col.last IS NOT NULL AND v_col.seqmax = 9223372036854775807 THEN -- else it is the range of a node, or was ended
      RAISE EXCEPTION 'the numbers of % began at %, so they cannot begin at % any more', v_col.relname, v_col.seqstart, v_start
        USING ERRCODE = 'LL003', HINT = 'Give the cell to the first migrate of a schema.';
    END IF;
    EXECUTE format('ALTER SEQUENCE %s MINVALUE 1 NO MAXVALUE START %s RESTART %s', v_col.seq, v_start, coalesce(v_last + 1, v_start) + p_gap);
    v_set := v_set + 1;
  END LOOP;
  RETURN v_set;
END $$;
COMMENT ON FUNCTION start_identities IS
  'Numbers of rows begin at cell * 2^40 + 1, or go on behind those that are there. Errors: LL002 bad argument, LL003 a number of another cell was given out.';
REVOKE ALL ON FUNCTION start_identities FROM PUBLIC;
