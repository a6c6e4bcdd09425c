-- The notes of the pools of a cell about locks that did not do what a lock should. Columns: kind, count.
-- Locks: none.
SELECT kind, count(*) FROM lock_incidents GROUP BY kind ORDER BY kind
