-- Locks the row of a box, or returns none if another session has it. $1 bigint: box.
-- Columns: box_id. Locks: the row, until the end.
SELECT box_id FROM ledgerlock_lab.lab_boxes WHERE box_id = $1::bigint FOR UPDATE SKIP LOCKED
