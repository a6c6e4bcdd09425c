-- Highest fence among these users: tells how far our token lies behind when they were fenced.
-- $1 bigint[]: user ids. Columns: fence. Locks: none.
SELECT max(fence) FROM ledgerlock.users WHERE user_id = ANY ($1::bigint[])
