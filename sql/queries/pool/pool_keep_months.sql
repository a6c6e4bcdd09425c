-- Makes some of the months that the pool may write into: where something is due, this one, and two ahead.
-- $1 timestamptz: now (null: the database's clock). $2 bigint: milliseconds after which it begins no other.
-- Columns: how many it made; 0: none is missing.
-- Locks: SHARE UPDATE EXCLUSIVE on the tables with months, if one is made: nobody who writes waits for it.
SELECT keep_months($1::timestamptz, 2, $2::bigint)
