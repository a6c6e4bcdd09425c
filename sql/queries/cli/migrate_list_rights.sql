-- migrate_list_rights: the statements with which PUBLIC and our roles have the rights of a list of objects, and no others on these
-- objects, and nobody has one on a partition of theirs. A role that is missing is made, without login; an object that is missing
-- is left out, and so is one of somebody else.
-- $1 text: the list, as sql/audit/schema_as_built reads it. Column: all statements in one text. No lock.
WITH line AS (
  SELECT split_part(l, E'\t', 1) AS name, split_part(l, E'\t', 2) AS definition
    FROM string_to_table($1::text, E'\n') AS l
), role AS (
  SELECT substr(name, 6) AS name FROM line WHERE name LIKE 'role %'
), target AS (
  SELECT 'SCHEMA' AS what, format('SCHEMA %I', current_schema()) AS words
   UNION ALL
  SELECT c.relname::text, quote_ident(c.relname)
    FROM pg_catalog.pg_class AS c JOIN line ON line.name IN ('table ' || c.relname, 'view ' || c.relname)
   WHERE c.relnamespace = current_schema()::regnamespace
   UNION ALL
  SELECT 'FUNCTION ' || f.words, 'FUNCTION ' || f.words
    FROM (SELECT proname || '(' || pg_get_function_identity_arguments(oid) || ')' AS words
            FROM pg_catalog.pg_proc WHERE pronamespace = current_schema()::regnamespace) AS f
         JOIN line ON line.name = 'function ' || f.words
   UNION ALL
  SELECT NULL, 'DOMAIN ' || quote_ident(typname)
    FROM pg_catalog.pg_type WHERE typnamespace = current_schema()::regnamespace AND typtype = 'd'
     AND EXISTS (SELECT FROM line WHERE starts_with(line.name, 'constraint ' || typname || '.'))
), statement AS (
  SELECT 1 AS step, format('CREATE ROLE %I NOLOGIN', name) AS words
    FROM role WHERE name NOT IN (SELECT rolname FROM pg_catalog.pg_roles)
   UNION ALL
  SELECT 2, format('REVOKE ALL ON %s FROM PUBLIC, %s', words, (SELECT string_agg(quote_ident(name), ', ') FROM role)) FROM target
   UNION ALL
  SELECT 2, format('REVOKE ALL ON %s FROM %s', p.oid::regclass, CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END)
    FROM pg_catalog.pg_class AS c JOIN line ON line.name = 'table ' || c.relname
         JOIN pg_catalog.pg_inherits AS i ON i.inhparent = c.oid JOIN pg_catalog.pg_class AS p ON p.oid = i.inhrelid,
         aclexplode(p.relacl) AS a
   WHERE c.relnamespace = current_schema()::regnamespace AND a.grantee <> p.relowner
   UNION ALL
  SELECT 3, format('GRANT %s ON %s TO %I', line.definition, target.words, role.name)
    FROM line, target, role
   WHERE line.name = 'grant ON ' || target.what || ' TO ' || role.name)
SELECT string_agg(words, '; ' ORDER BY step, words COLLATE "C") AS statements FROM statement;
