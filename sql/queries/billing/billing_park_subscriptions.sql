-- Parks subscriptions that cannot be worked for a reason of their own, and journals each, also in lock_incidents. A
-- parked row is not pulled until a person releases it.
-- $1 bigint[]: subscription ids. $2 bigint: token of the batch, or 0. $3 text: worker. $4 text: why.
-- Columns: id of each that this statement parked. Locks: the rows.
SELECT id FROM park_subscriptions($1::bigint[], $2::bigint, $3::text, $4::text) AS parked (id)
