-- Back to a plain table. Columns: none.
DROP INDEX IF EXISTS ledgerlock_lab.lab_one_charge
