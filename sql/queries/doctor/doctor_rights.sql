-- The rights of this role, as `doctor` shows them and `run` needs them: what the program's schema grants to ledgerlock_worker
-- is what a worker uses. An object that is not there is the matter of other checks.
-- $1 text: the objects of the schema, a line each (sql/schema/objects.txt). $2 text: its name. Locks: none.
-- Columns as of doctor_server.
WITH schema AS (
  SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = $2::text
), needed AS (
  SELECT parts[1] AS kind, parts[2] AS name
    FROM regexp_split_to_table($1::text, E'\n') AS line,
         regexp_match(line, E'^grant ON (FUNCTION |)([a-z_]+).* TO ledgerlock_worker\t(?:EXECUTE|SELECT)$') AS parts
), lacking AS (
  SELECT 0 AS n, 'the schema ' || $2::text AS name FROM schema WHERE NOT has_schema_privilege(oid, 'USAGE')
   UNION ALL
  SELECT 1, p.proname
    FROM pg_catalog.pg_proc AS p
   WHERE p.pronamespace = (SELECT oid FROM schema) AND p.proname IN (SELECT name FROM needed WHERE kind <> '')
     AND NOT has_function_privilege(p.oid, 'EXECUTE')
   UNION ALL
  SELECT 2, c.relname
    FROM pg_catalog.pg_class AS c
   WHERE c.relnamespace = (SELECT oid FROM schema) AND c.relname IN (SELECT name FROM needed WHERE kind = '')
     AND NOT has_table_privilege(c.oid, 'SELECT')
)
SELECT 'role_rights', CASE WHEN lacks <> '' THEN 2 WHEN is_super OR writes <> '' THEN 1 ELSE 0 END,
       CASE WHEN lacks <> '' THEN format('%s may not use %s', current_user, lacks)
            WHEN is_super THEN 'it is a superuser: no constraint or grant binds it'
            WHEN writes <> '' THEN format('it may write %s beside the functions', writes)
            ELSE 'it may do the work of a worker and no more' END,
       CASE WHEN lacks <> '' AND is_worker
            THEN format('ledgerlock_worker itself lacks that, as after a restore without rights: run `ledgerlock migrate` as %s', owner)
            WHEN lacks <> '' THEN 'run as a member of ledgerlock_worker'
            ELSE 'run as a member of ledgerlock_worker, and nothing else' END
  FROM (SELECT coalesce((SELECT string_agg(name, ', ' ORDER BY n, name) FROM (SELECT n, name FROM lacking ORDER BY n, name LIMIT 5) AS first), '')
               || CASE WHEN (SELECT count(*) FROM lacking) > 5 THEN format(' and %s more', (SELECT count(*) - 5 FROM lacking)) ELSE '' END AS lacks,
               coalesce((SELECT string_agg(c.relname, ', ' ORDER BY c.relname) FROM pg_catalog.pg_class AS c
                          WHERE c.relnamespace = (SELECT oid FROM schema)
                            AND c.relname IN ('charges', 'wallet_entries', 'orders', 'users', 'subscriptions', 'stock')
                            AND has_table_privilege(c.oid, 'INSERT, UPDATE, DELETE')), '') AS writes,
               EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = 'ledgerlock_worker' AND pg_has_role(oid, 'MEMBER')) AS is_worker,
               (SELECT pg_get_userbyid(nspowner) FROM pg_catalog.pg_namespace WHERE oid = (SELECT oid FROM schema)) AS owner,
               (SELECT rolsuper OR rolbypassrls FROM pg_catalog.pg_roles WHERE rolname = current_user) AS is_super) AS r
