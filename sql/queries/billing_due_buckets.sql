-- How long until the first subscription of each bucket is due, read from the heads of its strips in the index. A head
-- costs a page of the index as far as its entries match: so only as far ahead as anybody wants to know, and the strips
-- of a bucket only up to the first that has something. If that is due now, the bucket is; if not, all of its strips are
-- asked.
-- $1 timestamptz: now (null: the database's clock). $2 bigint: how far ahead, in milliseconds.
-- Columns: bucket, milliseconds (0: due now), in the order of the buckets; none for a bucket where nothing will be due
-- as soon. Locks: none.
SELECT b::bigint,
       CASE WHEN head.at <= clock.now THEN 0 ELSE ceil(extract(epoch FROM head.at - clock.now) * 1000) END::bigint
  FROM (SELECT coalesce($1::timestamptz, now()) AS now) AS clock,
       generate_series(0, 63) AS b,
       LATERAL (SELECT near.at
                  FROM generate_series(b, 1023, 64) AS g (strip),
                       LATERAL (SELECT s.next_due_at AS at FROM ledgerlock.subscriptions AS s
                                 WHERE s.strip = g.strip::smallint AND s.state IN ('active', 'past_due')
                                   AND s.next_due_at <= clock.now + $2::bigint * interval '1 ms'
                                 ORDER BY s.next_due_at LIMIT 1) AS near
                 LIMIT 1) AS found,
       LATERAL (SELECT CASE WHEN found.at <= clock.now THEN found.at
                            ELSE (SELECT min(near.at)
                                    FROM generate_series(b, 1023, 64) AS g (strip),
                                         LATERAL (SELECT s.next_due_at AS at FROM ledgerlock.subscriptions AS s
                                                   WHERE s.strip = g.strip::smallint AND s.state IN ('active', 'past_due')
                                                     AND s.next_due_at <= clock.now + $2::bigint * interval '1 ms'
                                                   ORDER BY s.next_due_at LIMIT 1) AS near)
                       END AS at
               OFFSET 0) AS head -- a fence: head.at stands for its probes once, not wherever it is named
 ORDER BY b
