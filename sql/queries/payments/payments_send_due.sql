-- The attempts of the batch become sent, by send_payments, before anybody is called. Their users must have been claimed by an earlier
-- statement of this transaction.
-- $1 bigint: token. $2 text: worker. $3 timestamptz: now (null: the database's clock). $4 bigint[]: payment ids. $5 tid[] and $6 bigint[]:
-- places and payers, which are not read. $7 bigint: milliseconds from which on a call counts as one without an answer.
-- $8 text: what the form of the gateway makes of a sample.
-- Columns: sent, captured, declined and given back (0: the answers come later); how many are due again at once (0); how many carry the token.
SELECT sent, captured, declined, refunded, due_again, effects
  FROM send_payments($1::bigint, $2::text, $3::timestamptz, $4::bigint[], $7::bigint, $8::text)
 WHERE ($5::tid[], $6::bigint[]) IS NOT NULL OR true
