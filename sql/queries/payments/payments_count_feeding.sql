-- Subscriptions that are due, of which billing may plan attempts, and attempts that are not decided.
-- $1 timestamptz: now (null: the database's clock). Column: how many. Locks: none.
SELECT (SELECT count(*) FROM subscriptions WHERE state IN ('active', 'past_due') AND next_due_at <= coalesce($1::timestamptz, now()))
       + (SELECT count(*) FROM payments WHERE state IN ('planned', 'sent', 'unknown'))
