-- Locks the row of a user until the end of the transaction, unless another session has it. $1 bigint: user id.
-- Columns: user_id; no row: it is locked, or there is none. Locks: the row.
SELECT user_id FROM users WHERE user_id = $1::bigint FOR UPDATE SKIP LOCKED
