-- The outcome of a transaction: in progress, committed, aborted; null when the server no longer knows it.
-- $1 bigint: transaction id. Columns: status. Locks: none.
SELECT pg_xact_status($1::bigint::text::xid8)
