-- Buckets that have a pending order. Probes each of the 64 buckets at the head of its index.
-- $1 timestamptz: now (null: the database's clock). Columns: bucket. Locks: none.
SELECT b::bigint
  FROM generate_series(0, 63) AS b
 WHERE EXISTS (SELECT FROM ledgerlock.orders AS o
                WHERE o.bucket = b::smallint AND o.state = 'pending'
                  AND o.placed_at <= coalesce($1::timestamptz, now()))
