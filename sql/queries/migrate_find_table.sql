-- migrate_find_table: is there a record of migrations in this database?
-- Asks the catalogue, which every role may read, so that "missing" and "not allowed" stay two answers.
-- No parameters. Column: found (bool). No lock.
SELECT EXISTS (
  SELECT FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
   WHERE n.nspname = 'ledgerlock' AND c.relname = 'schema_migrations') AS found;
