-- Moves this schema to another node of the Citus cluster, in the transaction of the caller, which holds back all that write to it to
-- its end. $1 text, $2 int8: host and port of the node, as Citus knows it. $3: block_writes, or force_logical; its type is in a schema that
-- only superusers may use by name.
-- Column: one, void as text.
SELECT citus_schema_move(schemaid, $1::text, $2::bigint::integer, $3)::text
  FROM pg_dist_schema
 WHERE schemaid = current_schema()::regnamespace
   AND EXISTS (SELECT FROM citus_shards WHERE table_name = 'users'::regclass AND (nodename, nodeport) <> ($1::text, $2::bigint::integer))
