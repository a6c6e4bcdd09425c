-- How long until an order of each bucket is due: any that is due now, else the first of those placed in the future.
-- $1 timestamptz: now (null: the database's clock). $2 bigint: how far ahead, in milliseconds.
-- Columns: bucket, milliseconds (0: due now), in the order of the buckets; none for a bucket where no order is due as
-- soon. Locks: none.
-- BETWEEN and not "=": that order is then the one index's alone. With "=" the key of the orders has it too, and is
-- walked from its begin for every bucket that is empty, as soon as most orders lie in one.
SELECT b::bigint,
       CASE WHEN head.at <= clock.now THEN 0
            ELSE ceil(extract(epoch FROM head.at - clock.now) * 1000) END::bigint
  FROM (SELECT coalesce($1::timestamptz, now()) AS now) AS clock,
       generate_series(0, 63) AS b,
       LATERAL (SELECT coalesce((SELECT o.placed_at FROM ledgerlock.orders AS o
                                  WHERE o.bucket BETWEEN b::smallint AND b::smallint
                                    AND o.state = 'pending' AND o.placed_at <= clock.now
                                  ORDER BY o.bucket, o.order_id LIMIT 1),
                                (SELECT min(o.placed_at) FROM ledgerlock.orders AS o
                                  WHERE o.bucket BETWEEN b::smallint AND b::smallint AND o.state = 'pending')) AS at
               OFFSET 0) AS head -- a fence: head.at stands for its probe once, not wherever it is named
 WHERE head.at <= clock.now + $2::bigint * interval '1 ms'
 ORDER BY b
