-- The backlog of orders, counted in the partial indexes of pending and of parked orders.
-- $1 timestamptz: now (null: the database's clock).
-- Columns: due, oldest_due_ms (age of the oldest that is due), future (placed later), parked. Locks: none.
SELECT due.n AS due, coalesce(extract(epoch FROM clock.now - due.oldest) * 1000, 0)::bigint AS oldest_due_ms,
       (SELECT count(*) FROM orders WHERE state = 'pending' AND placed_at > clock.now) AS future,
       (SELECT count(*) FROM orders WHERE state = 'parked') AS parked
  FROM (SELECT coalesce($1::timestamptz, now()) AS now) AS clock,
       LATERAL (SELECT count(*) AS n, min(placed_at) AS oldest FROM orders
                 WHERE state = 'pending' AND placed_at <= clock.now) AS due
