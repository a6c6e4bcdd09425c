-- Counts of committed rows. Columns: periods captured, orders fulfilled, orders rejected, subscriptions due,
-- orders pending, the time in microseconds. Locks: none.
SELECT (SELECT count(*) FROM charges WHERE state = 'captured'),
       (SELECT count(*) FROM orders WHERE state = 'fulfilled'),
       (SELECT count(*) FROM orders WHERE state = 'rejected'),
       (SELECT count(*) FROM subscriptions WHERE state IN ('active', 'past_due') AND next_due_at <= now()),
       (SELECT count(*) FROM orders WHERE state = 'pending'),
       (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
