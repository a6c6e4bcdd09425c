-- is_away(): whether this schema is a cell of a Citus cluster whose tables are on another node.
CREATE OR REPLACE FUNCTION is_away()
RETURNS boolean LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $$
BEGIN
  IF to_regclass('pg_catalog.pg_dist_local_group') IS NULL THEN
    RETURN false;
  END IF;
  RETURN EXISTS (SELECT FROM pg_dist_shard AS s JOIN pg_dist_placement AS p USING (shardid)
                  WHERE s.logicalrelid = 'feed_base'::regclass AND p.groupid <> (SELECT groupid FROM pg_dist_local_group));
END $$;
COMMENT ON FUNCTION is_away IS 'Whether this schema is a cell of a Citus cluster whose tables are on another node.';
REVOKE ALL ON FUNCTION is_away FROM PUBLIC;
