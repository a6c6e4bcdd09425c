-- The workers that reported within the last day, since one that stands still reports no more. Columns: pid, job, slot. Locks: none.
SELECT pid::bigint, job, slot::bigint FROM workers
