-- The last twenty incidents, newest first. Locks: none.
-- Columns: kind, resource, worker, phase, detail (text each), incident_id, at in milliseconds since 1970.
SELECT kind, resource, worker, phase, detail, incident_id,
       (extract(epoch FROM at) * 1000)::bigint AS at_ms
  FROM lock_incidents ORDER BY incident_id DESC LIMIT 20
