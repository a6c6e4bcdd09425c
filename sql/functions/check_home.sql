-- check_home(): refuses (SQLSTATE 25006, as a server that takes no writes) if this schema is a cell of a Citus cluster and its tables are on
-- another node. Transaction ids and session locks are of one server, so that all decisions are made there; a session that was left
-- behind when the cell was moved finds the node when it connects again. Locks: none. A transaction that has written a row of the
-- cell keeps the cell here, and one that only locked a row does not: so this is asked after the first write.
CREATE OR REPLACE FUNCTION check_home()
RETURNS void LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  IF is_away() THEN
    RAISE read_only_sql_transaction USING MESSAGE = 'the cell is on another node of the cluster', HINT = 'Connect to the node that citus_shards names.';
  END IF;
END $$;
COMMENT ON FUNCTION check_home IS 'Refuses where the tables of a cell are on another node of a Citus cluster. Errors: 25006.';
REVOKE ALL ON FUNCTION check_home FROM PUBLIC;
