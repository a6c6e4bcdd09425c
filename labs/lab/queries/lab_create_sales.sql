-- Every unit that was taken of a stock, also one that was not there. Columns: none.
CREATE TABLE IF NOT EXISTS ledgerlock_lab.lab_sales (item_id bigint, period_no bigint)
