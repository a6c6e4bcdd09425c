-- A token that no other batch gets, for a batch that holds no Redis lock. Runs in a transaction of its own.
-- $1 bigint: floor. Columns: token. Locks: the row.
SELECT next_token($1::bigint)
