-- What is committed. Columns: periods captured, orders fulfilled, orders rejected, subscriptions due,
-- orders pending. Locks: none.
SELECT (SELECT count(*) FROM ledgerlock.charges WHERE state = 'captured'),
       (SELECT count(*) FROM ledgerlock.orders WHERE state = 'fulfilled'),
       (SELECT count(*) FROM ledgerlock.orders WHERE state = 'rejected'),
       (SELECT count(*) FROM ledgerlock.subscriptions WHERE state IN ('active', 'past_due') AND next_due_at <= now()),
       (SELECT count(*) FROM ledgerlock.orders WHERE state = 'pending')
