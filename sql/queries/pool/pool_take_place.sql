-- Takes one of the places that workers of a job have in this cell, until the session ends. $1 text: the job; $2 int8: how many
-- there are. Column: the place, from 0; -1: workers have all. A place that somebody holds who is no worker, as any login can, is
-- given as if it were free. Locks: advisory, to the end of the session.
WITH places AS (
  SELECT n, hashtextextended(current_schema() || ' place ' || n || ' of ' || $1::text, 0) AS key FROM generate_series(0, $2::bigint - 1) AS n
)
SELECT coalesce(
  (SELECT n FROM places WHERE pg_try_advisory_lock(key) LIMIT 1),
  (SELECT n FROM places
    WHERE NOT EXISTS (
      SELECT FROM pg_locks AS l LEFT JOIN pg_stat_activity AS a USING (pid)
       WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
         AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
         AND (l.classid::bigint, l.objid::bigint) = (key >> 32 & 4294967295, key & 4294967295)
         AND coalesce(a.usesysid = quote_ident(session_user)::regrole
                      OR a.usesysid = (SELECT nspowner FROM pg_namespace WHERE nspname = current_schema())
                      OR pg_has_role(a.usesysid, 'ledgerlock_worker', 'MEMBER'), true))
    LIMIT 1),
  -1)
