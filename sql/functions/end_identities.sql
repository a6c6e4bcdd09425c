-- end_identities(): where the tables of a cell are not, no number of a row is given out: an INSERT by a session that is here, at the
-- coordinator or at the node that had the cell, is refused (SQLSTATE 2200H) until it connects to the node of the cell. At home it does nothing.
CREATE OR REPLACE FUNCTION end_identities()
RETURNS void LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
  v_col record;
BEGIN
  IF NOT is_away() THEN
    RETURN;
  END IF;
  PERFORM set_config('citus.enable_ddl_propagation', 'off', true);
  FOR v_col IN SELECT s.seqrelid::regclass AS seq, s.seqmax, coalesce(pg_sequence_last_value(s.seqrelid), s.seqstart) AS last
                 FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attidentity <> ''
                 JOIN pg_sequence AS s ON s.seqrelid = pg_get_serial_sequence(c.oid::regclass::text, a.attname)::regclass
                WHERE c.relnamespace = current_schema()::regnamespace LOOP
    CONTINUE WHEN v_col.seqmax <= v_col.last; -- not above: last numbers of others' sequences may be hidden from us
    PERFORM setval(v_col.seq, v_col.last);
    EXECUTE format('ALTER SEQUENCE %s MINVALUE 1 MAXVALUE %s', v_col.seq, v_col.last);
  END LOOP;
END $$;
COMMENT ON FUNCTION end_identities IS 'Gives out no number where the tables of a cell of a Citus cluster are not.';
REVOKE ALL ON FUNCTION end_identities FROM PUBLIC;
