-- Ends the session of a worker that is known to be dead: the server may still run its last statement and keep its
-- row locks until then. No two workers ever have the same application name.
-- $1 text: application name. Columns: number of sessions ended. Locks: none.
SELECT count(pg_terminate_backend(pid))
  FROM pg_stat_activity
 WHERE application_name = $1::text AND datname = current_database() AND usename = current_user
