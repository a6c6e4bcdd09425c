-- Decides an order that cannot be served. $1 bigint: order. Columns: none. Locks: the row.
UPDATE ledgerlock_plain.items SET done = periods WHERE kind = 'order' AND item_id = $1::bigint
