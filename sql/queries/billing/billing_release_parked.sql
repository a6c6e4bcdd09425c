-- Gives parked subscriptions back to the workers, and journals it.
-- $1 bigint[]: subscription ids. Columns: id of each that was parked. Locks: the rows and their users.
SELECT id FROM release_subscriptions($1::bigint[]) AS given (id)
