-- The backlog of payments, counted in the partial indexes of those that are not decided and of parked ones.
-- $1 timestamptz: now, which is not read: the gateway's time is that of the clock.
-- Columns: due, oldest_due_ms (age of the oldest that is due), future (an answer or another call is awaited), parked; planned, sent and
-- unknown, by state; unknown_ms (since the first call of the oldest unknown one), next_ms (until the next of these is asked again). Locks: none.
SELECT count(*) FILTER (WHERE due_at <= now()) AS due,
       coalesce(extract(epoch FROM now() - min(due_at) FILTER (WHERE due_at <= now())) * 1000, 0)::bigint AS oldest_due_ms,
       count(*) FILTER (WHERE due_at > now()) AS future,
       (SELECT count(*) FROM payments WHERE state = 'parked' AND ($1::timestamptz IS NULL OR true)) AS parked,
       count(*) FILTER (WHERE state = 'planned') AS planned, count(*) FILTER (WHERE state = 'sent') AS sent,
       count(*) FILTER (WHERE state = 'unknown') AS unknown,
       coalesce(extract(epoch FROM now() - min(first_sent_at) FILTER (WHERE state = 'unknown')) * 1000, 0)::bigint AS unknown_ms,
       greatest(extract(epoch FROM min(due_at) FILTER (WHERE state = 'unknown') - now()) * 1000, 0)::bigint AS next_ms
  FROM payments WHERE state IN ('planned', 'sent', 'unknown')
