-- The backlog of billing, counted in the partial indexes of due and of parked subscriptions.
-- $1 timestamptz: now (null: the database's clock).
-- Columns: due, oldest_due_ms (age of the oldest that is due), future (due later), parked. Locks: none.
SELECT due.n AS due, coalesce(extract(epoch FROM clock.now - due.oldest) * 1000, 0)::bigint AS oldest_due_ms,
       (SELECT count(*) FROM subscriptions
         WHERE state IN ('active', 'past_due') AND next_due_at > clock.now) AS future,
       (SELECT count(*) FROM subscriptions WHERE state = 'parked') AS parked
  FROM (SELECT coalesce($1::timestamptz, now()) AS now) AS clock,
       LATERAL (SELECT count(*) AS n, min(next_due_at) AS oldest FROM subscriptions
                 WHERE state IN ('active', 'past_due') AND next_due_at <= clock.now) AS due
