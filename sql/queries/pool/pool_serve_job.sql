-- Makes this session the one that serves a job, of the sessions of all pools, until it ends. Asked once in a
-- session, since it counts. $1 text: the job. Columns: 1, or 0 while another session serves it. Locks: advisory, to the end of the session.
SELECT pg_try_advisory_lock(hashtextextended(current_schema() || ' serves ' || $1::text, 0))::int::bigint
