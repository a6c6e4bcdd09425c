-- Attempts to take money from cards that are not decided: once they are, the next periods may be due.
-- $1 timestamptz: now, which is not read. Column: how many. Locks: none.
SELECT count(*) FROM payments WHERE state IN ('planned', 'sent', 'unknown') AND ($1::timestamptz IS NULL OR true)
