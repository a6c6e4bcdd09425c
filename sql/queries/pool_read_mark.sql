-- The same number twice means that no transaction that wrote anything has ended in between: what could be read then
-- is what can be read now. It is the id behind that of the last one that ended. 0 while an older one still runs: then
-- its end would not change the number.
-- Columns: mark. Locks: none.
SELECT CASE WHEN pg_snapshot_xmin(seen) = pg_snapshot_xmax(seen) THEN pg_snapshot_xmax(seen)::text::bigint ELSE 0 END
  FROM pg_current_snapshot() AS seen
