-- Due subscriptions: oldest first in each shard, shard after shard until the limit is reached. The rows are read without
-- a lock, so they only tell which keys to lock; billing_apply_charges reads them again under the claim.
-- $1 bigint: the shard to begin with. $2 timestamptz: now (null: the database's clock). $3 bigint: limit.
-- $4 timestamptz: a time. $5 bigint: an id; in that shard, only subscriptions behind the one that is due then and has it are
-- read.
-- The row has arrays, in parallel: subscription_ids, resource kinds (null: all 0, users), user_ids, places, times at which
-- they are due; then the shard of the last row, and true if the job is paused. Arrays null: nothing is due, or the job is
-- paused. Locks: none.
-- (SELECT $n) hides the values from the planner: it then keeps one generic plan, and does not plan every execution.
WITH job AS MATERIALIZED (SELECT EXISTS (SELECT FROM paused_jobs WHERE job = 'billing') AS is_paused)
SELECT array_agg(subscription_id), NULL::bigint[], array_agg(user_id), array_agg(place), array_agg(next_due_at),
       max(n) % 1024,
       (SELECT is_paused FROM job)
  FROM (SELECT due.subscription_id, due.user_id, due.place, due.next_due_at, g.n
          FROM generate_series((SELECT $1::bigint), (SELECT $1::bigint + 1023)) AS g (n),
               LATERAL (SELECT s.subscription_id, s.user_id, ctid AS place, s.next_due_at FROM subscriptions AS s
                         WHERE s.shard = (g.n % 1024)::smallint AND s.state IN ('active', 'past_due')
                           AND s.next_due_at <= (SELECT coalesce($2::timestamptz, now()))
                           AND (s.next_due_at, s.subscription_id)
                               > (CASE WHEN g.n = (SELECT $1::bigint) THEN (SELECT $4::timestamptz) ELSE '-infinity' END,
                                  CASE WHEN g.n = (SELECT $1::bigint) THEN (SELECT $5::bigint) ELSE 0 END)
                         ORDER BY s.next_due_at, s.subscription_id LIMIT (SELECT $3::bigint)) AS due
         WHERE NOT (SELECT is_paused FROM job)
         LIMIT (SELECT $3::bigint)) AS pulled
