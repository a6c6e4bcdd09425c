-- Attempts that are due: planned, unknown, or sent so long ago that no answer comes any more; oldest first in each shard, shard after
-- shard until the limit is reached. Read without a lock: payments_send_due reads them again under the claim.
-- $1 bigint: the shard to begin with. $2 timestamptz: now, which is not read: the gateway's time is that of the clock. $3 bigint: limit.
-- $4 timestamptz: a time. $5 bigint: an id; in that shard, only attempts behind the one that is due then and has it are read.
-- The row has arrays, in parallel: payment_ids, resource kinds (null: all 0, users), user_ids, places (null), times at which they are
-- due; then the shard of the last row, and true if the job is paused. Arrays null: nothing is due, or the job is paused. Locks: none.
WITH job AS MATERIALIZED (SELECT EXISTS (SELECT FROM paused_jobs WHERE job = 'payments') AS is_paused)
SELECT array_agg(payment_id), NULL::bigint[], array_agg(user_id), NULL::tid[], array_agg(due_at), max(n) % 64, (SELECT is_paused FROM job)
  FROM (SELECT due.payment_id, due.user_id, due.due_at, g.n
          FROM generate_series((SELECT $1::bigint), (SELECT $1::bigint + 63)) AS g (n),
               LATERAL (SELECT p.payment_id, p.user_id, p.due_at FROM payments AS p
                         WHERE p.shard = (g.n % 64)::smallint AND p.state IN ('planned', 'sent', 'unknown')
                           AND p.due_at <= (SELECT now() WHERE $2::timestamptz IS NULL OR true)
                           AND (p.due_at, p.payment_id)
                               > (CASE WHEN g.n = (SELECT $1::bigint) THEN (SELECT $4::timestamptz) ELSE '-infinity' END,
                                  CASE WHEN g.n = (SELECT $1::bigint) THEN (SELECT $5::bigint) ELSE 0 END)
                         ORDER BY p.due_at, p.payment_id LIMIT (SELECT $3::bigint)) AS due
         WHERE NOT (SELECT is_paused FROM job)
         LIMIT (SELECT $3::bigint)) AS pulled
