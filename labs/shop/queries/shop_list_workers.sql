-- The workers that reported within the last day, since one that stands still reports no more.
-- Columns: pid, job, place among the workers of its job. Locks: none.
SELECT pid::bigint, job, (slot - min(slot) OVER (PARTITION BY pool, job))::bigint AS place FROM workers
