-- Buckets that have a due subscription. Probes each of the 64 buckets at the head of its index.
-- $1 timestamptz: now (null: the database's clock). Columns: bucket. Locks: none.
SELECT b::bigint
  FROM generate_series(0, 63) AS b
 WHERE EXISTS (SELECT FROM ledgerlock.subscriptions AS s
                WHERE s.bucket = b::smallint AND s.state IN ('active', 'past_due')
                  AND s.next_due_at <= coalesce($1::timestamptz, now()))
