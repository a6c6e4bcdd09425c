-- status_backlog: what waits, through the partial indexes that workers use. Locks: none.
-- Columns: now as text, due (subscriptions), oldest_due_s, pending (orders), oldest_pending_s.
SELECT to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS now,
       due.n AS due, coalesce(extract(epoch FROM now() - due.oldest), 0)::int8 AS oldest_due_s,
       pending.n AS pending, coalesce(extract(epoch FROM now() - pending.oldest), 0)::int8 AS oldest_pending_s
  FROM (SELECT count(*) AS n, min(next_due_at) AS oldest FROM ledgerlock.subscriptions
         WHERE state IN ('active', 'past_due') AND next_due_at <= now()) AS due,
       (SELECT count(*) AS n, min(placed_at) AS oldest FROM ledgerlock.orders
         WHERE state = 'pending' AND placed_at <= now()) AS pending;
