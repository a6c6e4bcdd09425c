-- After the death of a worker: charges those of its orders with it that are still pending, so whose effects it did
-- not commit. They are suspects from then on.
-- $1 bigint[]: order ids that it worked. $2 timestamptz: now (null: the database's clock). $3 text: worker.
-- Columns: order_id, deaths it is charged with. Locks: the suspects' rows in quarantine.
SELECT item, crashes
  FROM ledgerlock.note_crash('orders', ARRAY(
         SELECT order_id FROM ledgerlock.orders
          WHERE order_id = ANY ($1::bigint[]) AND state = 'pending'
            AND placed_at <= coalesce($2::timestamptz, now())),
         $3::text, cardinality($1::bigint[]) = 1)
