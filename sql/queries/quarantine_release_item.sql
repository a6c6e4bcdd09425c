-- Gives what is set aside back to the workers.
-- $1 text: "order" or "subscription". $2 bigint: id. Columns: whether it was set aside. Locks: the row, its user's.
SELECT ledgerlock.release_parked($1::text, $2::bigint)
