-- Gives back what pool_serve_job took: the next session that asks serves the job.
-- $1 text: the job. Columns: 1: this session had it; 0: it had not. Locks: none.
SELECT pg_advisory_unlock(hashtextextended(current_schema() || ' serves ' || $1::text, 0))::int::bigint
