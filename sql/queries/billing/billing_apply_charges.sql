-- Charges one period of each subscription of the batch, by apply_charges.
-- The users must have been claimed by an earlier statement of this transaction, so the snapshot of
-- this statement is younger than the row locks.
-- $1 bigint: token. $2 text: worker. $3 timestamptz: now (null: the database's clock).
-- In parallel, for each subscription:
-- $4 bigint[]: subscription ids. $5 tid[]: places, from the pull. $6 bigint[]: payers, the user ids.
-- Then $7 bigint: the most periods that may be due of one subscription; one with more is refused (check_catch_up).
-- Columns: captured, declined, planned (by card), cancelled, deferred; how many of these subscriptions are due again at once; how many
-- rows carry the token.
SELECT captured, declined, planned, cancelled, deferred, due_again, effects
  FROM apply_charges($1::bigint, $2::text, $3::timestamptz, $4::bigint[], $5::tid[], $6::bigint[], $7::bigint)
