-- Locks the row of an item, and waits for whoever has it. $1 bigint: item.
-- Columns: item_id. Locks: the row, until the end.
SELECT item_id FROM ledgerlock_lab.lab_items WHERE item_id = $1::bigint FOR UPDATE
