-- Due subscriptions of some buckets, one bucket after the other until there are enough, and in each strip by strip: first
-- the one whose oldest has waited longest, and oldest first in each. A hint what to lock, read again under the claim.
-- $1 bigint[]: buckets. $2 timestamptz: now (null: the database's clock). $3 bigint: limit.
-- One row of arrays, in parallel: subscription_ids, resource kinds (null: all 0, users), user_ids, deaths they are
-- charged with (-1: no suspect; null: there are none, and none is looked up), places; then how many of the buckets have
-- nothing due beside that. Arrays null: nothing is due. Locks: none.
-- (SELECT $n): a plan for a known array looks cheaper than the one for any, and would be made anew each time.
WITH instant AS (
  SELECT coalesce($2::timestamptz, now()) AS now
)
SELECT array_agg(subscription_id), NULL::bigint[], array_agg(user_id),
       array_agg(coalesce((SELECT crashes FROM ledgerlock.quarantine WHERE job = 'billing' AND item = subscription_id),
                          -1)::bigint)
         FILTER (WHERE EXISTS (SELECT FROM ledgerlock.quarantine)),
       array_agg(place),
       CASE WHEN count(*) < $3::bigint THEN cardinality($1::bigint[]) ELSE max(nth) - 1 END::bigint
  FROM (SELECT due.subscription_id, due.user_id, due.place, b.nth
          FROM unnest((SELECT $1::bigint[])) WITH ORDINALITY AS b (bucket, nth),
               LATERAL (SELECT g.strip::smallint, head.at
                          FROM generate_series(b.bucket::integer, 1023, 64) AS g (strip),
                               LATERAL (SELECT s.next_due_at AS at FROM ledgerlock.subscriptions AS s
                                         WHERE s.strip = g.strip::smallint AND s.state IN ('active', 'past_due')
                                           AND s.next_due_at <= (SELECT now FROM instant)
                                         ORDER BY s.next_due_at LIMIT 1) AS head
                         ORDER BY head.at) AS first,
               LATERAL (SELECT s.subscription_id, s.user_id, s.ctid AS place FROM ledgerlock.subscriptions AS s
                         WHERE s.strip = first.strip AND s.state IN ('active', 'past_due')
                           AND s.next_due_at <= (SELECT now FROM instant)
                         ORDER BY s.next_due_at LIMIT (SELECT $3::bigint)) AS due
         LIMIT (SELECT $3::bigint)) AS pulled
