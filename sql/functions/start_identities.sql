-- start_identities(cell, last): numbers of rows begin at cell * 2^40 + 1, so those of several databases never meet and can be
-- brought together. Returns how many columns it set. For migrate --cell, before the first row: later it refuses. On a node of a
-- Citus cluster, which has a range of its own for each sequence, it gives that range up. `last` is of a cell that moves to this node:
-- the last number that was given out elsewhere, by table and column; numbers go on behind it.
CREATE OR REPLACE FUNCTION start_identities(p_cell bigint, p_last jsonb DEFAULT NULL)
RETURNS integer LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
  v_start bigint := (p_cell << 40) + 1;
  v_col   record;
  v_set   integer := 0;
BEGIN
  IF p_cell IS NULL OR p_cell NOT BETWEEN 0 AND 8191 THEN -- the numbers stay below 2^53, which JSON keeps exactly
    RAISE EXCEPTION 'a cell is a number from 0 to 8191' USING ERRCODE = 'LL002';
  END IF;
  FOR v_col IN SELECT c.relname, s.seqrelid::regclass AS seq, s.seqstart, pg_sequence_last_value(s.seqrelid) AS last,
                      (p_last ->> (c.relname || '.' || a.attname))::bigint AS elsewhere
                 FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attidentity <> ''
                 JOIN pg_sequence AS s ON s.seqrelid = pg_get_serial_sequence(c.oid::regclass::text, a.attname)::regclass
                WHERE c.relnamespace = current_schema()::regnamespace AND (s.seqstart <> v_start OR p_last IS NOT NULL) LOOP
    IF v_col.last IS NOT NULL AND p_last IS NULL THEN
      RAISE EXCEPTION 'the numbers of % began at %, so they cannot begin at % any more', v_col.relname, v_col.seqstart, v_start
        USING ERRCODE = 'LL003', HINT = 'Give the cell to the first migrate of a schema.';
    END IF;
    EXECUTE format('ALTER SEQUENCE %s MINVALUE 1 NO MAXVALUE START %s RESTART %s', v_col.seq, v_start, coalesce(v_col.elsewhere + 1, v_start));
    v_set := v_set + 1;
  END LOOP;
  RETURN v_set;
END $$;
COMMENT ON FUNCTION start_identities IS
  'Numbers of rows begin at cell * 2^40 + 1, or go on behind those that another node gave out. Errors: LL002 bad argument, LL003 a number was given out already.';
REVOKE ALL ON FUNCTION start_identities FROM PUBLIC;
