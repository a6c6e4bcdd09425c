-- Journals an incident, never inside the transaction that it is about.
-- $1 text: resource. $2 bigint: token. $3 text: worker. $4 text: kind. $5 text: phase.
-- $6 bigint: transaction id or null. $7 text: detail. $8 bigint: how many milliseconds ago. Columns: one, void.
SELECT log_incident($1::text, $2::bigint, $3::text, $4::text, $5::text, $6::bigint, $7::text, $8::bigint)
