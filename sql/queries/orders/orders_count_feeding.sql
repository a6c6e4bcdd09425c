-- Attempts to take money from cards for orders that are not decided: where the gateway has nothing of one, its order is pending again.
-- $1 timestamptz: now, which is not read. $2 text: the jobs of this pool. Column: how many, 0 where it works no payments. Locks: none.
SELECT count(*) FROM payments WHERE state IN ('planned', 'sent', 'unknown') AND kind = 'payment' AND strpos($2::text, 'payments') > 0
   AND ($1::timestamptz IS NULL OR true)
