-- Gives parked rows back to the workers, and journals it.
-- $1 text: job. $2 bigint[]: ids of its items. Columns: id of each that was parked. Locks: the rows and their users.
SELECT id FROM release_rows($1::text, $2::bigint[]) AS given (id)
