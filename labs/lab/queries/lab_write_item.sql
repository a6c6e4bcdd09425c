-- Writes what a worker has computed from what it read: the charge, the sale, the new state of the item. As simple
-- programs do it, the new state is a value, not a change. The write is guarded, if at all, by a fence, or
-- the comparison with what was read. $1 bigint: item. $2 bigint: period. $3 bigint: units left. $4 bigint: token, 0
-- without fences. $5 bigint: period that must still be the next; -1: any. Columns: rows written. Locks: the row.
WITH moved AS (
  UPDATE ledgerlock_lab.lab_items SET next_period = $2::bigint + 1, on_hand = $3::bigint, fence = $4::bigint
   WHERE item_id = $1::bigint AND fence <= $4 AND ($5::bigint < 0 OR next_period = $5)
  RETURNING item_id
), charged AS (
  INSERT INTO ledgerlock_lab.lab_charges (item_id, period_no) SELECT item_id, $2 FROM moved
), sold AS (
  INSERT INTO ledgerlock_lab.lab_sales (item_id, period_no) SELECT item_id, $2 FROM moved
)
SELECT count(*) FROM moved
