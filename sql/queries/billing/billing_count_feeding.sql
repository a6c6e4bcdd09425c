-- Attempts to take money from cards that are not decided: once they are, the next periods, or the same again, may be due.
-- $1 timestamptz: now, which is not read. $2 text: the jobs of this pool. Column: how many, 0 where it works no payments. Locks: none.
SELECT count(*) FROM payments WHERE state IN ('planned', 'sent', 'unknown') AND kind = 'charge' AND strpos($2::text, 'payments') > 0
   AND ($1::timestamptz IS NULL OR true)
