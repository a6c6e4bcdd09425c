-- Claims users: locks their rows, but none that another session holds and none whose fence is above the token.
-- A row that is not returned is busy, fenced or absent: pool_refused_users tells which.
-- $1 bigint: token. $2 bigint[]: user ids.
-- The row has transaction id, user_ids in their order (null: none was claimed).
-- Locks: the rows, until the end.
SELECT xid, user_ids FROM claim_users($1::bigint, $2::bigint[])
