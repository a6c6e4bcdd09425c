-- How large a cell of a Citus cluster is on disk, with its indexes, and where. Columns: bytes; host:port of the node. Locks: none.
SELECT coalesce(sum(shard_size), 0)::bigint, coalesce(max(nodename || ':' || nodeport), '')
  FROM citus_shards JOIN pg_class ON oid = table_name WHERE relnamespace = current_schema()::regnamespace
