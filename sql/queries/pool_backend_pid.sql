-- The server process that answers: the same one for a whole session, unless a pooler stands between.
-- Columns: process id. Locks: none.
SELECT pg_backend_pid()::bigint
