-- migrate_find_table: tells if this database has a record of migrations.
-- The catalogue can be read by every role, so "missing" and "not allowed" stay two answers.
-- No parameters. Column: found (bool). No lock.
SELECT EXISTS (
  SELECT FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
   WHERE n.nspname = trim('"' FROM split_part(current_setting('search_path'), ',', 1)) AND c.relname = 'schema_migrations') AS found;
