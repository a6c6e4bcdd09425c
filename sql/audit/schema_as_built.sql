-- Every table, column, constraint, index, view, trigger, function, grant and role is the one that this program's migrations make.
-- Reads ledgerlock.objects, which the program sets: a line for each object, its name and definition with a tab between.
-- Without it, by hand in psql, every object is listed, with the roles of the usual prefix: so scripts/schema-objects makes the list. An object that somebody
-- added breaks nothing, but a right of PUBLIC or of one of our roles that is not in the list does, and so does a rule of one
-- of our tables, or a trigger that comes before its rows: these can leave rows out in silence. A newer program that expanded
-- the schema may have added such triggers, and replaced functions and views: only the names, rights and settings of these are
-- compared then.
WITH ours AS (
  SELECT c.oid, c.relname, c.relkind, c.relacl, c.relowner, c.relpersistence, c.relrowsecurity
    FROM pg_class AS c
   WHERE c.relnamespace = current_schema()::regnamespace AND NOT c.relispartition),
actual AS (
  SELECT 'migration ' || m.name AS name, 'applied' AS definition, NULL AS object
    FROM schema_migrations AS m
   WHERE m.kind = 'migration'
   UNION ALL
  SELECT 'table ' || o.relname, CASE o.relpersistence WHEN 'p' THEN 'permanent' ELSE 'UNLOGGED' END
         || CASE WHEN o.relrowsecurity THEN ', rows are hidden by policies' ELSE '' END, NULL
    FROM ours AS o
   WHERE o.relkind IN ('r', 'p')
   UNION ALL
  SELECT 'constraint ' || coalesce(o.relname, t.typname) || '.' || c.conname,
         pg_get_constraintdef(c.oid) || CASE WHEN EXISTS (SELECT FROM pg_trigger AS g WHERE g.tgconstraint = c.oid AND g.tgenabled <> 'O')
                                             THEN ' DISABLED' ELSE '' END, NULL
    FROM pg_constraint AS c LEFT JOIN ours AS o ON o.oid = c.conrelid LEFT JOIN pg_type AS t ON t.oid = c.contypid
   WHERE c.connamespace = current_schema()::regnamespace AND c.contype IN ('c', 'p', 'u', 'f', 'x')
     AND (o.oid IS NOT NULL OR t.oid IS NOT NULL)
   UNION ALL
  SELECT 'column ' || o.relname || '.' || a.attname,
         format_type(a.atttypid, a.atttypmod) || CASE WHEN a.attnotnull THEN ' NOT NULL' ELSE '' END
         || CASE a.attidentity WHEN 'a' THEN ' ALWAYS AS IDENTITY' WHEN 'd' THEN ' BY DEFAULT AS IDENTITY' ELSE '' END
         || coalesce(CASE a.attgenerated WHEN '' THEN ' DEFAULT ' ELSE ' GENERATED AS ' END || pg_get_expr(d.adbin, d.adrelid), ''), o.relname
    FROM ours AS o JOIN pg_attribute AS a ON a.attrelid = o.oid
         LEFT JOIN pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
   WHERE o.relkind IN ('r', 'p') AND a.attnum > 0 AND NOT a.attisdropped
   UNION ALL
  SELECT 'index ' || o.relname, pg_get_indexdef(o.oid, 0, true) || CASE WHEN i.indisvalid THEN '' ELSE ' INVALID' END, NULL
    FROM ours AS o JOIN pg_index AS i ON i.indexrelid = o.oid
   UNION ALL
  -- PostgreSQL 16 and later name columns of a view of one table without it.
  SELECT 'view ' || o.relname, encode(sha256(convert_to(regexp_replace(
           pg_get_viewdef(o.oid), '\m[a-z_]+\.', '', 'g'), 'UTF8')), 'hex'), o.relname
    FROM ours AS o
   WHERE o.relkind = 'v'
   UNION ALL
  SELECT 'trigger ' || o.relname || '.' || g.tgname,
         replace(pg_get_triggerdef(g.oid, true), ' REFERENCING NEW TABLE AS made FOR EACH STATEMENT', ' FOR EACH ROW') || CASE g.tgenabled WHEN 'O' THEN '' WHEN 'A' THEN ' ALWAYS' WHEN 'R' THEN ' REPLICA' ELSE ' DISABLED' END,
         CASE WHEN g.tgtype & 3 = 3 THEN o.relname END -- before each row
    FROM ours AS o JOIN pg_trigger AS g ON g.tgrelid = o.oid
   WHERE NOT g.tgisinternal
   UNION ALL
  SELECT 'rule ' || o.relname || '.' || w.rulename, pg_get_ruledef(w.oid, true), o.relname
    FROM ours AS o JOIN pg_rewrite AS w ON w.ev_class = o.oid
   WHERE o.relkind IN ('r', 'p')
   UNION ALL
  SELECT 'function ' || p.proname || '(' || pg_get_function_identity_arguments(p.oid) || ')',
         CASE WHEN p.proowner <> n.nspowner THEN 'of another owner ' ELSE '' END
         || CASE WHEN p.prosecdef THEN 'SECURITY DEFINER ' ELSE '' END || coalesce(replace(array_to_string(p.proconfig, ' '), 'search_path=' || quote_ident(current_schema()) || ',', 'search_path=ours,') || ' ', '')
         || encode(sha256(convert_to(replace(concat_ws(E'\n', l.lanname, p.provolatile, p.proisstrict, pg_get_function_arguments(p.oid), pg_get_function_result(p.oid),
                                                       coalesce(pg_get_function_sqlbody(p.oid), p.prosrc)), E'\r', ''), 'UTF8')), 'hex'), p.proname
    FROM pg_proc AS p JOIN pg_language AS l ON l.oid = p.prolang JOIN pg_namespace AS n ON n.oid = p.pronamespace
   WHERE p.pronamespace = current_schema()::regnamespace
   UNION ALL
  SELECT 'grant ' || g.what || ' TO ' || CASE WHEN g.grantee = 0 THEN 'PUBLIC' ELSE r.rolname END,
         string_agg(g.privilege, ', ' ORDER BY g.privilege COLLATE "C"), g.object
    FROM (SELECT 'ON SCHEMA' AS what, a.grantee, a.privilege_type AS privilege, n.nspowner AS owner, 'SCHEMA' AS object
            FROM pg_namespace AS n, aclexplode(coalesce(n.nspacl, acldefault('n', n.nspowner))) AS a
           WHERE n.oid = current_schema()::regnamespace
           UNION ALL
          SELECT 'ON ' || o.relname, a.grantee, a.privilege_type, o.relowner, o.relname
            FROM ours AS o,
                 aclexplode(coalesce(o.relacl,
                                     acldefault(CASE o.relkind WHEN 'S' THEN 's' ELSE 'r' END::"char", o.relowner))) AS a
           WHERE o.relkind IN ('r', 'p', 'S', 'v')
           UNION ALL
          SELECT 'ON ' || o.relname || '.' || c.attname, a.grantee, a.privilege_type, o.relowner, o.relname
            FROM ours AS o JOIN pg_attribute AS c ON c.attrelid = o.oid, aclexplode(c.attacl) AS a
           WHERE o.relkind IN ('r', 'p')
           UNION ALL
          SELECT 'ON FUNCTION ' || p.proname || '(' || pg_get_function_identity_arguments(p.oid) || ')',
                 a.grantee, a.privilege_type, p.proowner, p.proname
            FROM pg_proc AS p, aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) AS a
           WHERE p.pronamespace = current_schema()::regnamespace) AS g
         LEFT JOIN pg_roles AS r ON r.oid = g.grantee
   WHERE g.grantee <> g.owner AND (g.grantee = 0 OR starts_with(r.rolname, left('ledgerlock_worker', -6)))
   GROUP BY g.what, g.object, g.grantee, r.rolname
   UNION ALL
  -- The administrator says who is a member of our roles, but not what our roles may besides. Statistics harm nothing.
  SELECT 'role ' || r.rolname,
         coalesce(nullif(concat_ws(', ', CASE WHEN r.rolsuper THEN 'superuser' END, CASE WHEN r.rolbypassrls THEN 'passes policies' END,
                   CASE WHEN r.rolcreaterole THEN 'makes roles' END,
                   (SELECT 'member of ' || string_agg(g.rolname, ', ' ORDER BY g.rolname COLLATE "C")
                      FROM pg_auth_members AS m JOIN pg_roles AS g ON g.oid = m.roleid
                     WHERE m.member = r.oid
                       AND g.rolname NOT IN ('pg_monitor', 'pg_read_all_settings', 'pg_read_all_stats', 'pg_stat_scan_tables'))), ''), 'its rights alone'), NULL
    FROM pg_namespace AS n, aclexplode(n.nspacl) AS a JOIN pg_roles AS r ON r.oid = a.grantee
   WHERE n.oid = current_schema()::regnamespace AND r.oid <> n.nspowner AND starts_with(r.rolname, left('ledgerlock_worker', -6))),
expected AS (
  SELECT split_part(line, E'\t', 1) AS name, split_part(line, E'\t', 2) AS definition
    FROM string_to_table(nullif(current_setting('ledgerlock.objects', true), ''), E'\n') AS line
   WHERE line <> ''),
newer AS (
  SELECT count(*) > 0 AS is_newer
    FROM actual AS a
   WHERE a.name LIKE 'migration %\_expand\_%' AND a.name NOT IN (SELECT e.name FROM expected AS e)),
compared AS (
  SELECT coalesce(e.name, a.name) AS name, e.name AS expected, a.name AS actual, a.object, a.definition AS is_now,
         regexp_replace(e.definition, n.ignored, '', 'g') AS wanted, regexp_replace(a.definition, n.ignored, '', 'g') AS definition
    FROM expected AS e FULL JOIN actual AS a ON a.name = e.name
   CROSS JOIN (SELECT CASE WHEN is_newer THEN '[0-9a-f]{64}' ELSE 'none of it' END AS ignored FROM newer) AS n)
SELECT c.name AS what,
       CASE WHEN c.actual IS NULL THEN 'it is missing'
            WHEN c.expected IS NULL THEN c.is_now
            ELSE 'it is now: ' || c.is_now END AS detail
  FROM compared AS c
 WHERE c.definition IS DISTINCT FROM c.wanted
   AND (c.expected IS NOT NULL OR NOT EXISTS (SELECT FROM expected)
        OR ((c.name LIKE 'grant %' OR (c.name ~ '^(trigger|rule) ' AND NOT (SELECT is_newer FROM newer)))
            AND c.object IN (SELECT o.object FROM actual AS o JOIN expected AS x USING (name) UNION ALL SELECT 'SCHEMA')))
 ORDER BY c.name COLLATE "C";
