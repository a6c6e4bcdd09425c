-- Due subscriptions of one bucket, strip by strip: first the one whose oldest has waited longest, and oldest first in
-- each. A hint what to lock, read again under the claim.
-- $1 bigint: bucket. $2 timestamptz: now (null: the database's clock). $3 bigint: limit.
-- Columns: subscription_id, resource kind (0 user), user_id, deaths it is charged with (null: no suspect), place.
-- As long as there are no suspects at all, none is looked up. Locks: none.
WITH instant AS (
  SELECT coalesce($2::timestamptz, now()) AS now
)
SELECT due.subscription_id, 0::bigint, due.user_id,
       CASE WHEN EXISTS (SELECT FROM ledgerlock.quarantine)
            THEN (SELECT crashes FROM ledgerlock.quarantine WHERE job = 'billing' AND item = due.subscription_id) END,
       due.ctid
  FROM (SELECT g.strip::smallint, head.at
          FROM generate_series($1::bigint::integer, 1023, 64) AS g (strip),
               LATERAL (SELECT s.next_due_at AS at FROM ledgerlock.subscriptions AS s
                         WHERE s.strip = g.strip::smallint AND s.state IN ('active', 'past_due')
                           AND s.next_due_at <= (SELECT now FROM instant)
                         ORDER BY s.next_due_at LIMIT 1) AS head
         ORDER BY head.at) AS first,
       LATERAL (SELECT s.subscription_id, s.user_id, s.ctid FROM ledgerlock.subscriptions AS s
                 WHERE s.strip = first.strip AND s.state IN ('active', 'past_due')
                   AND s.next_due_at <= (SELECT now FROM instant)
                 ORDER BY s.next_due_at LIMIT $3::bigint) AS due
 LIMIT $3::bigint
