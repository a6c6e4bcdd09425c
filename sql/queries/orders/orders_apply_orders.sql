-- Serves the orders of the batch in the order they were placed, by apply_orders.
-- Users and SKUs must have been claimed by earlier statements of this transaction.
-- $1 bigint: token. $2 timestamptz: now (null: the database's clock). $3 bigint[]: order ids. $4 text: worker.
-- Columns: fulfilled, rejected; how many of these orders are due again at once; how many of them carry the token.
SELECT fulfilled, rejected, due_again, effects
  FROM apply_orders($1::bigint, $2::timestamptz, $3::bigint[], $4::text)
