-- Every unit that was taken off a shelf, also one that was not there. Columns: none.
CREATE TABLE IF NOT EXISTS ledgerlock_lab.lab_sales (box_id bigint, period_no bigint)
