-- If the session of this worker has locked rows. $1 text: its pool. $2 bigint: its slot. Column: bool. Locks: none.
SELECT EXISTS (SELECT FROM pg_stat_activity AS a JOIN pg_locks AS l ON l.pid = a.pid
                WHERE a.datname = current_database() AND l.mode IN ('RowShareLock', 'RowExclusiveLock')
                  AND a.application_name LIKE 'ledgerlock worker ' || $1::text || '.' || $2::bigint || '.%')
