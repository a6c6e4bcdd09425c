-- The tables as function doctor finds them. $1 bigint: locks.lease_ms. Columns as of doctor_server. Locks: none.
SELECT * FROM jsonb_to_recordset(doctor($1::bigint)) AS f (name text, verdict bigint, says text, remedy text)
