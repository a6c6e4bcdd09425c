-- Serves the orders of the batch in the order they were placed, by apply_orders.
-- Users and SKUs must have been claimed by earlier statements of this transaction.
-- $1 bigint: token. $2 text: worker. $3 timestamptz: now (null: the database's clock). $4 bigint[]: order ids.
-- Columns: fulfilled, rejected, planned (a card is asked); how many of these orders are due again at once; how many of them carry the token.
SELECT fulfilled, rejected, planned, due_again, effects
  FROM apply_orders($1::bigint, $3::timestamptz, $4::bigint[], $2::text)
