-- Writes down that an orphan is given back, by refund_orphan. $1 text: reference. $2 text: what it was taken for. $3 bigint: amount in minor
-- units. $4 text: currency. Column: the key to ask the gateway under.
SELECT refund_orphan($1::text, $2::text, $3::bigint, $4::text)
