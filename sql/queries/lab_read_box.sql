-- Reads a box. $1 bigint: box. Columns: next_period, periods, on_hand. Locks: none.
SELECT next_period, periods, on_hand FROM ledgerlock_lab.lab_boxes WHERE box_id = $1::bigint
