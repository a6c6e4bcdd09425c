-- Workers to be hit, of those that reported of late: first those whose session has locked rows, so that it holds their keys; then the
-- others, by chance. Some may be of another machine, or gone.
-- Columns: pid, job, place among the workers of its job, slot, pool, holds (bool). Locks: none.
SELECT w.pid::bigint, w.job, w.place, w.slot::bigint, w.pool, held.worker IS NOT NULL AS holds
  FROM (SELECT pid, job, slot, pool, seen_at, (slot - min(slot) OVER (PARTITION BY pool, job))::bigint AS place FROM workers) AS w
  LEFT JOIN (SELECT DISTINCT split_part(a.application_name, ' ', 3) AS worker
               FROM pg_stat_activity AS a JOIN pg_locks AS l ON l.pid = a.pid
              WHERE a.datname = current_database() AND a.application_name LIKE 'ledgerlock worker %'
                AND l.mode IN ('RowShareLock', 'RowExclusiveLock')) AS held
    ON held.worker LIKE w.pool || '.' || w.slot || '.%'
 WHERE w.seen_at > clock_timestamp() - interval '10 seconds'
 ORDER BY holds DESC, random()
 LIMIT 256
