-- status_incidents: the last five lock_incidents, newest first. Locks: none.
-- Column: a JSON array of {at, kind, resource, worker, phase, detail}.
SELECT coalesce(json_agg(json_build_object('at', to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
                           'kind', kind, 'resource', resource, 'worker', worker, 'phase', phase, 'detail', detail)
                         ORDER BY incident_id DESC), '[]')::text
  FROM (SELECT * FROM lock_incidents ORDER BY incident_id DESC LIMIT 5) AS last;
