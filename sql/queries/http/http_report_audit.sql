-- Writes that a whole audit has ended. $1 bigint: the milliseconds that it took. $2 bigint: invariants. $3 text: a JSON array
-- of the names of those that are broken. Columns: one, void.
SELECT report_audit($1::bigint, $2::bigint, $3::text)
