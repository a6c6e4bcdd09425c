-- The last number of each identity column that was given out on this node. Column: jsonb as text, by table and column. Locks: none.
SELECT coalesce(jsonb_object_agg(c.relname || '.' || a.attname, pg_sequence_last_value(pg_get_serial_sequence(c.oid::regclass::text, a.attname)::regclass)), '{}')::text
  FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attidentity <> ''
 WHERE c.relnamespace = current_schema()::regnamespace
