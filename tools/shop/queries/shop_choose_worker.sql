-- A worker to be hit: of those that reported of late one whose session has locked rows, so that it holds their keys; else any.
-- Columns: pid, job, slot, holds (bool). Locks: none.
SELECT w.pid::bigint, w.job, w.slot::bigint, held.pool IS NOT NULL AS holds
  FROM live_workers AS w
  LEFT JOIN (SELECT DISTINCT split_part(a.application_name, ' ', 3) AS pool
               FROM pg_stat_activity AS a JOIN pg_locks AS l ON l.pid = a.pid
              WHERE a.datname = current_database() AND a.application_name LIKE 'ledgerlock worker %'
                AND l.mode IN ('RowShareLock', 'RowExclusiveLock')) AS held
    ON held.pool LIKE w.pool || '.' || w.slot || '.%'
 ORDER BY holds DESC, random()
 LIMIT 1
