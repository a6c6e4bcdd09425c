-- audit_wait_left: how much is left to do; cheap, since audit --wait polls it.
-- $1 text: now, null for the database's clock. Columns: now as text, due subscriptions and attempts to ask a card, pending orders.
-- Both are read through the partial indexes that workers use. Locks: none.
SELECT wanted.at::text AS now,
       (SELECT count(*) FROM subscriptions AS s
         WHERE s.state IN ('active', 'past_due') AND s.next_due_at <= wanted.at
           AND (s.cancel_at IS NULL
                OR period_start(s.anchor_at, s.unit, s.every, s.next_period_no) < s.cancel_at))
         + (SELECT count(*) FROM payments WHERE state IN ('planned', 'sent', 'unknown'))
         AS subscriptions,
       (SELECT count(*) FROM orders WHERE state = 'pending' AND placed_at <= wanted.at) AS orders
  FROM (SELECT coalesce($1::text::timestamptz, now()) AS at) AS wanted;
