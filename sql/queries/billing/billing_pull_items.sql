-- The subscriptions of a list that are still due, in the form of billing_pull_due.
-- $1 bigint[]: subscription ids. $2 timestamptz: now (null: the database's clock).
-- The row has arrays, in parallel: subscription_ids, resource kinds (null: all 0, users), user_ids, places. Arrays null:
-- none is due, or the job is paused. Locks: none.
SELECT array_agg(subscription_id), NULL::bigint[], array_agg(user_id), array_agg(place), NULL::timestamptz[]
  FROM (SELECT s.subscription_id, s.user_id, s.place
          FROM unnest($1::bigint[]) WITH ORDINALITY AS asked (id, nth)
         CROSS JOIN LATERAL (SELECT *, ctid AS place FROM subscriptions
                              WHERE subscription_id = asked.id
                             OFFSET 0) AS s -- OFFSET 0: one index scan for each, also with wrong statistics
         WHERE s.state IN ('active', 'past_due') AND s.next_due_at <= coalesce($2::timestamptz, now())
           AND NOT EXISTS (SELECT FROM paused_jobs WHERE job = 'billing')
         ORDER BY asked.nth) AS pulled
