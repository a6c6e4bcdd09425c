-- How large the schema is on disk, with its indexes. Column: bytes. Locks: ACCESS SHARE on each relation for a moment.
SELECT coalesce(sum(pg_relation_size(oid)), 0)::bigint FROM pg_class
 WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'i', 't', 'm')
