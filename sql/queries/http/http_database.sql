-- Which tables these are: the schema, the database, and the identifier that initdb gave to its cluster.
-- Locks: none. One row, one column: a JSON text.
SELECT to_json(current_schema() || ' of ' || current_database() || '@' || system_identifier)::text FROM pg_control_system()
