-- Back to a plain table. Columns: none.
ALTER TABLE ledgerlock_lab.lab_items DROP CONSTRAINT IF EXISTS lab_on_hand
