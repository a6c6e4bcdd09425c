-- What became of a transaction: in progress, committed, aborted; null when it is too long ago to tell.
-- $1 bigint: transaction id. Columns: status. Locks: none.
SELECT pg_xact_status($1::bigint::text::xid8)
