-- status_read_now: the time that all queries of status use as now. Locks: none. Column: now as a JSON text.
SELECT to_json(to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'))::text;
