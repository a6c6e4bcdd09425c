-- After a COMMIT whose answer was lost: how many of these orders carry the batch's token, or have a payment that it planned: the
-- gateway may have answered since.
-- $1 bigint: token. $2 bigint[]: order ids. Columns: count. Locks: none.
SELECT count(*)
  FROM (SELECT order_id FROM orders
         WHERE order_id = ANY ($2::bigint[]) AND fence = $1::bigint
         UNION
        SELECT source FROM payments
         WHERE source = ANY ($2::bigint[]) AND kind = 'payment' AND planned_fence = $1::bigint) AS effect
