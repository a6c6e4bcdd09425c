-- Makes the months that the pool may write into: where something is due, this one, and two ahead.
-- $1 timestamptz: now (null: the database's clock). Columns: how many it made.
-- Locks: SHARE UPDATE EXCLUSIVE on the tables with months, if one is made: nobody who writes waits for it.
SELECT keep_months($1::timestamptz, 2)
