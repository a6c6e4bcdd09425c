-- relation_bytes(table): how large a table or partition is on disk, without indexes; of a distributed one its rows on this node.
CREATE OR REPLACE FUNCTION relation_bytes(p_table regclass)
RETURNS bigint LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $$
DECLARE
  v_bytes bigint;
BEGIN
  IF to_regclass('pg_catalog.pg_dist_shard') IS NOT NULL THEN
    SELECT coalesce(sum(pg_relation_size(to_regclass(shard_name(logicalrelid, shardid)))), 0) INTO v_bytes
      FROM pg_dist_shard WHERE logicalrelid = p_table HAVING count(*) > 0;
  END IF;
  RETURN coalesce(v_bytes, pg_relation_size(p_table));
END $$;
COMMENT ON FUNCTION relation_bytes IS 'How large a table is on disk, without indexes; of a distributed one its rows on this node.';
REVOKE ALL ON FUNCTION relation_bytes FROM PUBLIC;
