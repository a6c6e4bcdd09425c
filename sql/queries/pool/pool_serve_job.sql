-- Makes this session the one that serves a job, of the sessions of all pools, until it ends. Asked until it answers 1, since the
-- lock counts. $1 text: the job. Columns: 1: it is; 0: another worker is, or a holder whose role is not known any more has just
-- gone; 2: somebody who is no worker holds the lock, as any login can: serve without it, and ask again.
-- Locks: advisory, to the end of the session.
WITH key AS (
  SELECT hashtextextended(current_schema() || ' serves ' || $1::text, 0) AS key
)
SELECT CASE WHEN pg_try_advisory_lock(key) THEN 1
            ELSE (SELECT CASE WHEN bool_and(coalesce(a.usesysid <> quote_ident(session_user)::regrole
                                                     AND a.usesysid <> (SELECT nspowner FROM pg_namespace WHERE nspname = current_schema())
                                                     AND NOT pg_has_role(a.usesysid, 'ledgerlock_worker', 'MEMBER'), false))
                              THEN 2 ELSE 0 END
                    FROM pg_locks AS l LEFT JOIN pg_stat_activity AS a USING (pid)
                   WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
                     AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
                     AND (l.classid::bigint, l.objid::bigint) = (key >> 32 & 4294967295, key & 4294967295)) END::bigint
  FROM key
