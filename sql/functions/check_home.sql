-- check_home(): refuses (SQLSTATE 25006, as a server that takes no writes) if this schema is a cell of a Citus cluster and its tables are on
-- another node. Transaction ids and session locks are of one server, so that all decisions are made there; a session that was left
-- behind when the cell was moved finds the node when it connects again. Locks: none, but who has locked a row of the cell keeps it here.
CREATE OR REPLACE FUNCTION check_home()
RETURNS void LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  IF to_regclass('pg_catalog.pg_dist_local_group') IS NULL THEN
    RETURN;
  END IF;
  IF EXISTS (SELECT FROM pg_dist_shard AS s JOIN pg_dist_placement AS p USING (shardid)
              WHERE s.logicalrelid = 'feed_base'::regclass AND p.groupid <> (SELECT groupid FROM pg_dist_local_group)) THEN
    RAISE read_only_sql_transaction USING MESSAGE = 'the cell is on another node of the cluster', HINT = 'Connect to the node that citus_shards names.';
  END IF;
END $$;
COMMENT ON FUNCTION check_home IS 'Refuses where the tables of a cell are on another node of a Citus cluster. Errors: 25006.';
REVOKE ALL ON FUNCTION check_home FROM PUBLIC;
