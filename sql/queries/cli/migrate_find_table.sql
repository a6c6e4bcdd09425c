-- migrate_find_table: tells if this database has a record of migrations, and if this role may read it.
-- The catalogue can be read by every role, so "missing" and "not allowed" stay two answers.
-- No parameters. Columns: found (0 none, 1 one, 2 one that this role may not read), owner of the schema, this role. No lock.
SELECT coalesce(max(CASE WHEN has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT') THEN 1 ELSE 2 END), 0) AS found,
       coalesce(max(pg_get_userbyid(n.nspowner)::text), '') AS owner, current_user::text AS role
  FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
 WHERE n.nspname = trim('"' FROM split_part(current_setting('search_path'), ',', 1)) AND c.relname = 'schema_migrations';
