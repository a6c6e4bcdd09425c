-- Every charge that was written, also a second one of the same period. Columns: none.
CREATE TABLE IF NOT EXISTS ledgerlock_lab.lab_charges (item_id bigint, period_no bigint)
