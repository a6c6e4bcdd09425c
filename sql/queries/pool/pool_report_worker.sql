-- Writes the counters of the worker in a slot of a pool.
-- $1 text: pool. $2 bigint: slot. $3 text: job. $4 text: host. $5 bigint: pid. $6 text: counters as JSON. Columns: one, void.
SELECT report_worker($1::text, $2::bigint::integer, $3::text, $4::text, $5::bigint::integer, $6::text::jsonb)
