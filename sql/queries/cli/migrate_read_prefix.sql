-- migrate_read_prefix: the prefix of the roles that have the rights of a worker in this schema, if ours have none there.
-- A role without any right on the schema may ask, too.
-- No parameters. Column: the prefix, without _; null: there is no schema yet, or it is of our roles. No lock.
SELECT CASE WHEN NOT bool_or(r.rolname = 'ledgerlock_worker') THEN min(left(r.rolname, -7)) END AS prefix
  FROM pg_catalog.pg_proc AS p JOIN pg_catalog.pg_namespace AS n ON n.oid = p.pronamespace, aclexplode(p.proacl) AS a
       JOIN pg_catalog.pg_roles AS r ON r.oid = a.grantee
 WHERE n.nspname = trim('"' FROM split_part(current_setting('search_path'), ',', 1))
   AND p.proname = 'apply_charges' AND r.oid <> p.proowner AND r.rolname LIKE '%\_worker';
