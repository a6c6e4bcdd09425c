-- Ends the session of a worker that is known to be dead: the server may still run its last statement, and hold its
-- rows until that is over. The name is one that no other worker ever has.
-- $1 text: application name. Columns: how many were ended. Locks: none.
SELECT count(pg_terminate_backend(pid))
  FROM pg_stat_activity
 WHERE application_name = $1::text AND datname = current_database() AND usename = current_user
