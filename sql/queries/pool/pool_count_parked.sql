-- How many rows the workers of a slot have parked, also when the answer to that was lost.
-- $1 text: pool and slot, with the dot behind it. Columns: count. Locks: none.
SELECT count(*)
  FROM lock_incidents
 WHERE kind = 'parked' AND starts_with(worker, $1::text)
