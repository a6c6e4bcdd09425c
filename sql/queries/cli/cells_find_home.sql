-- The node of a Citus cluster that has the tables of this schema, if that is another one than this: no row, if it is this one, or if
-- the schema is not distributed. Columns: host, port. Locks: none.
SELECT n.nodename, n.nodeport::bigint
  FROM pg_dist_shard AS s JOIN pg_dist_placement AS p USING (shardid) JOIN pg_dist_node AS n USING (groupid)
 WHERE s.logicalrelid = to_regclass('users') AND groupid <> (SELECT groupid FROM pg_dist_local_group) AND n.noderole = 'primary'
