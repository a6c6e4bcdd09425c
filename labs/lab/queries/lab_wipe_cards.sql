-- Empties the tables of charges by card. Columns: none. Locks: ACCESS EXCLUSIVE on both.
TRUNCATE ledgerlock_lab.lab_card_charges, ledgerlock_lab.lab_card_attempts
