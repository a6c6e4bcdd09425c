-- After a COMMIT whose answer was lost: how many of these attempts carry the batch's token.
-- $1 bigint: token. $2 bigint[]: payment ids. Columns: count. Locks: none.
SELECT count(*) FROM payments WHERE payment_id = ANY ($2::bigint[]) AND fence = $1::bigint
