-- Writes what a worker has computed from what it read: the charge, the sale, the new state of the box. As simple
-- programs do it, the new state is a value, not a change. Only the fence stands in the way, where there is one.
-- $1 bigint: box. $2 bigint: period. $3 bigint: units left. $4 bigint: token, 0 without fences.
-- Columns: rows written. Locks: the row.
WITH moved AS (
  UPDATE ledgerlock_lab.lab_boxes SET next_period = $2::bigint + 1, on_hand = $3::bigint, fence = $4::bigint
   WHERE box_id = $1::bigint AND fence <= $4
  RETURNING box_id
), charged AS (
  INSERT INTO ledgerlock_lab.lab_charges (box_id, period_no) SELECT box_id, $2 FROM moved
), sold AS (
  INSERT INTO ledgerlock_lab.lab_sales (box_id, period_no) SELECT box_id, $2 FROM moved
)
SELECT count(*) FROM moved
