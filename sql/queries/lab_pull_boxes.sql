-- Boxes that have a period due, in an order that the seed decides and all workers share.
-- $1 bigint: first. $2 bigint: last. $3 bigint: seed. Columns: box_id. Locks: none.
SELECT box_id FROM ledgerlock_lab.lab_boxes
 WHERE next_period < periods AND box_id BETWEEN $1::bigint AND $2::bigint
 ORDER BY hashint8extended(box_id, $3::bigint), box_id
 LIMIT 16
