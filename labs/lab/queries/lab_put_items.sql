-- Makes items of so many periods, with as many units in stock. $1 bigint: first. $2 bigint: last.
-- $3 bigint: periods. Columns: none. Locks: the new rows.
INSERT INTO ledgerlock_lab.lab_items (item_id, periods, next_period, units, on_hand, fence)
SELECT g, $3::bigint, 0, $3, $3, 0 FROM generate_series($1::bigint, $2::bigint) AS g
