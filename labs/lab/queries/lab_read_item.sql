-- Reads an item. $1 bigint: item. Columns: next_period, periods, on_hand. Locks: none.
SELECT next_period, periods, on_hand FROM ledgerlock_lab.lab_items WHERE item_id = $1::bigint
