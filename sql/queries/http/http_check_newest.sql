-- The cheap check of what was done last. $1 timestamptz: now (null: the database's clock).
-- Columns: charges, charged_twice, oversold. Locks: none.
SELECT charges, charged_twice, oversold FROM check_newest($1::timestamptz, 20)
