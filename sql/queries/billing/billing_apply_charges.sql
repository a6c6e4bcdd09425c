-- Charges one period of each subscription of the batch, by apply_charges.
-- The users must have been claimed by an earlier statement of this transaction, so the snapshot of
-- this statement is younger than the row locks.
-- $1 bigint: token. $2 text: worker. $3 timestamptz: now (null: the database's clock).
-- $4 bigint[]: pauses in seconds after the 1st, 2nd ... decline. Then in parallel, for each subscription:
-- $5 bigint[]: subscription ids. $6 tid[]: places, from the pull. $7 bigint[]: payers, the user ids.
-- Then $8 bigint: the most periods that may be due of one subscription; one with more is refused (check_catch_up).
-- Columns: captured, declined, cancelled, deferred; how many of these subscriptions are due again at once; how many
-- rows carry the token.
SELECT captured, declined, cancelled, deferred, due_again, effects
  FROM apply_charges($1::bigint, $2::text, $3::timestamptz, $4::bigint[], $5::bigint[], $6::tid[], $7::bigint[],
                                $8::bigint)
