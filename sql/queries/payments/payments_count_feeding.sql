-- Subscriptions and orders that are due, of which the jobs of this pool may plan attempts, and attempts that are not decided.
-- $1 timestamptz: now (null: the database's clock). $2 text: the jobs of this pool. Column: how many. Locks: none.
SELECT (SELECT count(*) FROM subscriptions
         WHERE state IN ('active', 'past_due') AND next_due_at <= coalesce($1::timestamptz, now()) AND strpos($2::text, 'billing') > 0)
       + (SELECT count(*) FROM orders
           WHERE state = 'pending' AND placed_at <= coalesce($1::timestamptz, now()) AND strpos($2::text, 'orders') > 0)
       + (SELECT count(*) FROM payments WHERE state IN ('planned', 'sent', 'unknown'))
