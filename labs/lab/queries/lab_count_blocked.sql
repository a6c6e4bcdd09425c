-- Sessions of this database that wait for a lock, of whichever role. Columns: count. Locks: none.
SELECT count(DISTINCT l.pid) FROM pg_locks AS l JOIN pg_stat_activity AS a USING (pid)
 WHERE NOT l.granted AND a.datname = current_database()
