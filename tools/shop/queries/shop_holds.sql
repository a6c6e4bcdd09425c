-- If the session of this worker has locked rows. $1 bigint: its process. Column: bool. Locks: none.
SELECT EXISTS (SELECT FROM live_workers AS w
                 JOIN pg_stat_activity AS a ON a.application_name LIKE 'ledgerlock worker ' || w.pool || '.' || w.slot || '.%'
                 JOIN pg_locks AS l ON l.pid = a.pid
                WHERE w.pid = $1::bigint AND a.datname = current_database() AND l.mode IN ('RowShareLock', 'RowExclusiveLock'))
