-- Sets orders aside whose effects broke an invariant: never pulled again.
-- $1 bigint[]: order ids. Columns: none. Locks: the rows.
UPDATE ledgerlock.orders
   SET state = 'parked'
 WHERE order_id = ANY ($1::bigint[]) AND state = 'pending'
