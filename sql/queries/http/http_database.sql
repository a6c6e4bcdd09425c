-- Which tables these are: the schemas that are searched, the database, and the identifier that initdb gave to its cluster.
-- Locks: none. One row, one column: text.
SELECT current_schemas(false)::text || ' of ' || current_database() || '@' || system_identifier FROM pg_control_system()
