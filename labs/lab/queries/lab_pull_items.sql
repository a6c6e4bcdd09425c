-- Items that have a period due, in an order that the seed decides and all workers share.
-- $1 bigint: first. $2 bigint: last. $3 bigint: seed. Columns: item_id, next_period. Locks: none.
SELECT item_id, next_period FROM ledgerlock_lab.lab_items
 WHERE next_period < periods AND item_id BETWEEN $1::bigint AND $2::bigint
 ORDER BY hashint8extended(item_id, $3::bigint), item_id
 LIMIT 16
