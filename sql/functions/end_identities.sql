-- end_identities(): no number of a row is given out any more, since the cell was moved to another node of the Citus cluster, which goes
-- on behind these: an INSERT by a session that is still here is refused (SQLSTATE 2200H) until it connects to that node.
CREATE OR REPLACE FUNCTION end_identities()
RETURNS void LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
  v_col record;
BEGIN
  FOR v_col IN SELECT s.seqrelid::regclass AS seq, coalesce(pg_sequence_last_value(s.seqrelid), s.seqstart) AS last
                 FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attidentity <> ''
                 JOIN pg_sequence AS s ON s.seqrelid = pg_get_serial_sequence(c.oid::regclass::text, a.attname)::regclass
                WHERE c.relnamespace = current_schema()::regnamespace LOOP
    PERFORM setval(v_col.seq, v_col.last);
    EXECUTE format('ALTER SEQUENCE %s MAXVALUE %s', v_col.seq, v_col.last);
  END LOOP;
END $$;
COMMENT ON FUNCTION end_identities IS 'Gives out no number any more: the cell was moved to another node.';
REVOKE ALL ON FUNCTION end_identities FROM PUBLIC;
