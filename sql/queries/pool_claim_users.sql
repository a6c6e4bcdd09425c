-- Claims users: locks their rows in key order, for this token or a later one only.
-- A statement of its own, before anything is read or decided. A user that is not returned is fenced.
-- $1 bigint: token. $2 bigint[]: user ids. Columns: user_id, transaction id. Locks: the rows, until the end.
SELECT user_id, pg_current_xact_id()::text::bigint
  FROM ledgerlock.users
 WHERE user_id = ANY ($2::bigint[]) AND fence <= $1::bigint
 ORDER BY user_id
   FOR UPDATE
