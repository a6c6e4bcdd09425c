-- How long until the first subscription of each bucket is due, read from the head of its index.
-- $1 timestamptz: now (null: the database's clock). Columns: bucket, milliseconds (0: due now; at most an hour), in
-- the order of the buckets; none for a bucket where nothing will ever be due. Locks: none.
SELECT b::bigint,
       CASE WHEN head.at <= clock.now THEN 0
            ELSE ceil(extract(epoch FROM least(head.at, clock.now + interval '1 hour') - clock.now) * 1000) END::bigint
  FROM (SELECT coalesce($1::timestamptz, now()) AS now) AS clock,
       generate_series(0, 63) AS b,
       LATERAL (SELECT s.next_due_at AS at FROM ledgerlock.subscriptions AS s
                 WHERE s.bucket = b::smallint AND s.state IN ('active', 'past_due')
                 ORDER BY s.next_due_at LIMIT 1) AS head
 ORDER BY b
