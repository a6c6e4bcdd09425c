-- Charges that the program takes for paid. Columns: their number. Locks: none.
SELECT count(*) FROM ledgerlock_lab.lab_card_charges WHERE is_paid
