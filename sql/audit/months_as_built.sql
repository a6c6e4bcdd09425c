-- Every month has its partition of charges, which has the constraints, triggers and rights of its table, and no more.
-- A closed month has its seal besides. By hand in psql, and for a program that is older than the schema, it reads the same.
WITH parent AS (
  SELECT oid, relname, relowner FROM pg_class
   WHERE oid = to_regclass('charges')
), closed AS (
  SELECT DISTINCT month FROM seals
), wanted AS (
  SELECT p.oid AS parent, p.relname, p.relname || to_char(m.month, '_YYYY_MM') AS name, m.month, p.relowner,
         EXISTS (SELECT FROM closed AS c WHERE c.month = m.month) AS is_closed
    FROM parent AS p, months AS m
), found AS (
  SELECT c.oid, c.relname AS name, c.relowner, c.relacl, c.relpersistence, c.relrowsecurity, i.inhparent AS parent, pg_get_expr(c.relpartbound, c.oid) AS bounds
    FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid
   WHERE i.inhparent IN (SELECT oid FROM parent)
), part AS (
  SELECT f.oid, f.name, f.bounds, f.relacl, f.relowner, f.relpersistence, f.relrowsecurity, w.relowner AS owner, w.parent, w.relname, w.month, w.is_closed,
         format('FOR VALUES FROM (''%s'') TO (''%s'')', w.month::timestamp AT TIME ZONE 'UTC',
                (w.month + interval '1 month') AT TIME ZONE 'UTC') AS bounds_wanted
    FROM wanted AS w JOIN found AS f ON f.parent = w.parent AND f.name = w.name
), of_table AS MATERIALIZED ( -- constraints; each definition is read once, and not again for each month
  SELECT oid, conrelid, conname, contype, convalidated, CASE contype WHEN 'c' THEN pg_get_constraintdef(oid) END AS definition
    FROM pg_constraint
   WHERE conrelid IN (SELECT oid FROM parent) AND contype IN ('c', 'p', 'u', 'f')
), wrong AS (
  SELECT coalesce(w.name, f.name) AS what, CASE WHEN f.name IS NULL THEN 'the partition is missing' ELSE 'it is of no month' END AS detail
    FROM wanted AS w FULL JOIN found AS f ON f.parent = w.parent AND f.name = w.name
   WHERE w.name IS NULL OR f.name IS NULL
   UNION ALL
  SELECT name, 'it holds ' || bounds FROM part WHERE bounds <> bounds_wanted
   UNION ALL
  SELECT p.name, 'constraint ' || c.conname || ' is not that of its table'
    FROM part AS p JOIN of_table AS c ON c.conrelid = p.parent
   WHERE NOT EXISTS (SELECT FROM pg_constraint AS o
                      WHERE o.conrelid = p.oid
                        AND CASE c.contype WHEN 'c' THEN o.conname = c.conname AND o.convalidated = c.convalidated
                                                    AND pg_get_constraintdef(o.oid) = c.definition
                                 ELSE o.conparentid = c.oid END)
   UNION ALL
  SELECT p.name, 'trigger ' || g.tgname || ' is not that of its table'
    FROM part AS p JOIN pg_trigger AS g ON g.tgrelid = p.parent
   WHERE NOT g.tgisinternal AND (g.tgtype & 1 = 1 OR g.tgtype & 32 = 32) -- for each row, or against TRUNCATE
     AND NOT EXISTS (SELECT FROM pg_trigger AS o
                      WHERE o.tgrelid = p.oid AND o.tgname = g.tgname AND o.tgenabled = g.tgenabled AND o.tgfoid = g.tgfoid
                        AND o.tgtype = g.tgtype)
   UNION ALL
  SELECT p.name, 'constraint ' || o.conname || ' was added'
    FROM part AS p JOIN pg_constraint AS o ON o.conrelid = p.oid
   WHERE o.contype IN ('c', 'p', 'u', 'f', 'x') AND o.conparentid = 0 AND o.conname <> 'month_is_closed'
     AND NOT EXISTS (SELECT FROM of_table AS c WHERE c.conrelid = p.parent AND c.conname = o.conname AND c.contype = 'c')
   UNION ALL
  SELECT p.name, 'trigger ' || o.tgname || ' was added'
    FROM part AS p JOIN pg_trigger AS o ON o.tgrelid = p.oid
   WHERE NOT o.tgisinternal AND o.tgtype & 3 = 3 -- before each row, which it can leave out
     AND NOT (p.is_closed AND o.tgname = 'month_is_closed')
     AND NOT EXISTS (SELECT FROM pg_trigger AS g WHERE g.tgrelid = p.parent AND g.tgname = o.tgname)
   UNION ALL
  SELECT p.name, 'rule ' || w.rulename || ' was added' FROM part AS p JOIN pg_rewrite AS w ON w.ev_class = p.oid
   UNION ALL
  SELECT p.name, 'role ' || CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END || ' may ' || a.privilege_type
    FROM part AS p, aclexplode(p.relacl) AS a
   WHERE a.grantee <> p.relowner
   UNION ALL
  SELECT name, 'its owner is ' || relowner::regrole FROM part WHERE relowner <> owner
   UNION ALL
  SELECT name, 'it is UNLOGGED, or hides rows by policies' FROM part WHERE relpersistence <> 'p' OR relrowsecurity
   UNION ALL
  SELECT p.name, CASE WHEN p.is_closed THEN 'it is not sealed' ELSE 'it is sealed, and its month is not closed' END
    FROM part AS p
   WHERE p.is_closed <> EXISTS (SELECT FROM pg_constraint AS o
                                 WHERE o.conrelid = p.oid AND o.conname = 'month_is_closed'
                                   AND pg_get_constraintdef(o.oid) = 'CHECK (false) NOT VALID')
      OR CASE WHEN p.is_closed THEN 2 ELSE 0 END <> (SELECT count(*) FROM pg_trigger AS o
                                                      WHERE o.tgrelid = p.oid AND o.tgenabled IN ('O', 'A')
                                                        AND o.tgname IN ('month_is_closed', 'month_stays_closed')
                                                        AND o.tgfoid = to_regproc('refuse_closed')))
SELECT what, detail
  FROM wrong
 ORDER BY what, detail;
