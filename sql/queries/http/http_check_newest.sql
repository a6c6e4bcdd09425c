-- The cheap check of what was done last. $1 timestamptz: now (null: the database's clock). Locks: none.
-- Columns: charges, wallets, skus (how many were looked at), charged_twice, oversold, wrong_totals.
SELECT charges, wallets, skus, charged_twice, oversold, wrong_totals FROM check_newest($1::timestamptz, 20)
