-- Journals where a lock did not do what a lock should. Never inside the transaction it tells of.
-- $1 text: resource. $2 bigint: token. $3 text: worker. $4 text: kind. $5 text: phase.
-- $6 bigint: transaction id or null. $7 text: detail. $8 bigint: how many milliseconds ago. Columns: none.
INSERT INTO ledgerlock.lock_incidents (resource, token, worker, kind, phase, xid, detail, at)
VALUES ($1::text, $2::bigint, $3::text, $4::text, $5::text, $6::bigint, $7::text,
        clock_timestamp() - $8::bigint * interval '1 millisecond')
