-- Sessions of workers in this database that have not ended yet. Columns: count. Locks: none.
SELECT count(*)
  FROM pg_stat_activity
 WHERE datname = current_database() AND application_name LIKE 'ledgerlock worker%'
