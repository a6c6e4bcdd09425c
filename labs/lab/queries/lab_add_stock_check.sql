-- The constraint that a unit meets that is not there. Columns: none.
ALTER TABLE ledgerlock_lab.lab_items ADD CONSTRAINT lab_on_hand CHECK (on_hand >= 0)
