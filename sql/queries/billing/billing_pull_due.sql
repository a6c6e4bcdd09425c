-- Due subscriptions: oldest first in each shard, shard after shard until the limit is reached. The rows are read without
-- a lock, so they only tell which keys to lock; billing_apply_charges reads them again under the claim.
-- $1 bigint: the shard to begin with. $2 timestamptz: now (null: the database's clock). $3 bigint: limit.
-- $4 bigint[]: users left out.
-- One row of arrays, in parallel: subscription_ids, resource kinds (null: all 0, users), user_ids, places; then the
-- shard behind that of the last row, and true if the job is paused. Arrays null: nothing is due, or the job is paused.
-- Locks: none.
-- (SELECT $n) hides the values from the planner: it then keeps one generic plan, and does not plan every execution.
WITH job AS MATERIALIZED (SELECT EXISTS (SELECT FROM paused_jobs WHERE job = 'billing') AS is_paused)
SELECT array_agg(subscription_id), NULL::bigint[], array_agg(user_id), array_agg(place), (max(n) + 1) % 1024,
       (SELECT is_paused FROM job)
  FROM (SELECT due.subscription_id, due.user_id, due.place, g.n
          FROM generate_series((SELECT $1::bigint), (SELECT $1::bigint + 1023)) AS g (n),
               LATERAL (SELECT s.subscription_id, s.user_id, ctid AS place FROM subscriptions AS s
                         WHERE s.shard = (g.n % 1024)::smallint AND s.state IN ('active', 'past_due')
                           AND s.next_due_at <= (SELECT coalesce($2::timestamptz, now()))
                           AND s.user_id <> ALL ((SELECT $4::bigint[])::bigint[])
                         ORDER BY s.next_due_at LIMIT (SELECT $3::bigint)) AS due
         WHERE NOT (SELECT is_paused FROM job)
         LIMIT (SELECT $3::bigint)) AS pulled
