-- What the worker in a slot of a pool has counted so far.
-- $1 text: pool. $2 bigint: slot. $3 text: host. $4 bigint: pid. $5 text: counters as JSON. Columns: none.
INSERT INTO ledgerlock.workers AS w (pool, slot, host, pid, started_at, seen_at, counters)
VALUES ($1::text, $2::bigint::integer, $3::text, $4::bigint::integer, now(), now(), $5::text::jsonb)
ON CONFLICT (pool, slot) DO UPDATE
   SET seen_at = now(), counters = excluded.counters,
       started_at = CASE WHEN w.pid = excluded.pid THEN w.started_at ELSE now() END,
       host = excluded.host, pid = excluded.pid
