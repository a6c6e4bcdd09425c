-- Tells if this server is that node of the Citus cluster. $1 text, $2 int8: host and port. Column: 1 or 0. Locks: none.
SELECT count(*) FROM pg_dist_node
 WHERE groupid = (SELECT groupid FROM pg_dist_local_group) AND nodename = $1::text AND nodeport = $2::bigint AND noderole = 'primary'
