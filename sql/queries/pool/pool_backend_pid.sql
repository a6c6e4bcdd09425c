-- The server process of this session. The process changes between statements when a connection pooler is in between.
-- Columns: process id. Locks: none.
SELECT pg_backend_pid()::bigint
