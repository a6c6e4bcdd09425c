-- How long until the first subscription of each bucket is due, read from the heads of its strips in the index.
-- Only an hour ahead: a page of the index is read as far as its entries match.
-- $1 timestamptz: now (null: the database's clock). Columns: bucket, milliseconds (0: due now), in the order of the
-- buckets; none for a bucket where nothing will be due within an hour. Locks: none.
SELECT bucket::bigint,
       CASE WHEN at <= now THEN 0 ELSE ceil(extract(epoch FROM at - now) * 1000) END::bigint
  FROM (SELECT coalesce($1::timestamptz, now()) AS now) AS clock,
       LATERAL (SELECT g.strip % 64 AS bucket, min(head.at) AS at
                  FROM generate_series(0, 1023) AS g (strip),
                       LATERAL (SELECT s.next_due_at AS at FROM ledgerlock.subscriptions AS s
                                 WHERE s.strip = g.strip::smallint AND s.state IN ('active', 'past_due')
                                   AND s.next_due_at <= now + interval '1 hour'
                                 ORDER BY s.next_due_at LIMIT 1) AS head
                 GROUP BY 1) AS first
 ORDER BY 1
