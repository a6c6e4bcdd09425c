-- An epoch that was never given out before. Columns: epoch. Locks: none.
SELECT nextval('ledgerlock_lab.lab_epochs')
