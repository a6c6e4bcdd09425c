-- Due subscriptions of one bucket, oldest first: a hint what to lock, read again under the claim.
-- $1 bigint: bucket. $2 timestamptz: now (null: the database's clock). $3 bigint: limit.
-- Columns: subscription_id, resource kind (0 user), user_id, deaths it is charged with (null: no suspect), place.
-- As long as there are no suspects at all, none is looked up. Locks: none.
SELECT subscription_id, 0::bigint, user_id,
       CASE WHEN EXISTS (SELECT FROM ledgerlock.quarantine)
            THEN (SELECT crashes FROM ledgerlock.quarantine WHERE job = 'billing' AND item = subscription_id) END,
       ctid
  FROM ledgerlock.subscriptions
 WHERE bucket = $1::bigint::smallint AND state IN ('active', 'past_due')
   AND next_due_at <= coalesce($2::timestamptz, now())
 ORDER BY next_due_at
 LIMIT $3::bigint
