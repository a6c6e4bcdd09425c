-- status_incidents: the last five lock_incidents, newest first. Locks: none.
-- Columns: at as text, kind, resource, worker, phase, detail.
SELECT to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS at, kind, resource, worker, phase, detail
  FROM ledgerlock.lock_incidents
 ORDER BY incident_id DESC
 LIMIT 5;
