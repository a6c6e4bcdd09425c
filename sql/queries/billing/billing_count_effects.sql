-- After a COMMIT whose answer was lost: how many charges of these subscriptions carry the batch's token.
-- $1 bigint: token. $2 bigint[]: subscription ids. Columns: count. Locks: none.
SELECT count(*)
  FROM charges
 WHERE subscription_id = ANY ($2::bigint[]) AND fence = $1::bigint
