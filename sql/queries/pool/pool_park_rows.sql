-- Parks rows that cannot be worked for a reason of their own, and journals each, also in lock_incidents. A parked row is not
-- pulled until a person releases it.
-- $1 text: job. $2 bigint[]: ids of its items. $3 bigint: token of the batch, or 0. $4 text: worker. $5 text: why.
-- Columns: id of each that this statement parked. Locks: the rows.
SELECT id FROM park_rows($1::text, $2::bigint[], $3::bigint, $4::text, $5::text) AS parked (id)
