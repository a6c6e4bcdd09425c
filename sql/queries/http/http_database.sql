-- Which tables these are: the schema, the database, and the identifier that initdb gave to its cluster.
-- Locks: none. One row, one column: text.
SELECT current_schema() || ' of ' || current_database() || '@' || system_identifier FROM pg_control_system()
