-- The constraint that a second charge meets. Columns: none.
CREATE UNIQUE INDEX IF NOT EXISTS lab_one_charge ON ledgerlock_lab.lab_charges (item_id, period_no)
