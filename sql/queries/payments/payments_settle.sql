-- Answers of the gateway, written down by settle_payments, in a transaction of its own.
-- $1 text: worker. $2 timestamptz: now (null: the database's clock). In parallel, for each attempt: $3 bigint[]: payment ids. $4 bigint[]:
-- tokens that they were sent with. $5 text: outcomes, $6 text: references, $7 text: reasons, each the text of an array. $8 bigint[]:
-- milliseconds until the next call.
-- The row has the ids that are settled (null: none), how many captured, declined, given back, and for how many the other jobs may do more now
-- (null: none).
SELECT settled, captured, declined, refunded, due_again
  FROM settle_payments($1::text, $2::timestamptz, $3::bigint[], $4::bigint[], $5::text::text[], $6::text::text[], $7::text::text[], $8::bigint[])
