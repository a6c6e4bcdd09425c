-- Gives parked orders back to the workers, and journals it.
-- $1 bigint[]: order ids. Columns: id of each that was parked. Locks: the rows.
SELECT id FROM release_orders($1::bigint[]) AS given (id)
