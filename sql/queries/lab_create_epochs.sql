-- Epochs for the strategies that use our lock: what was given out once is never given out again. Columns: none.
CREATE SEQUENCE IF NOT EXISTS ledgerlock_lab.lab_epochs START 2 MAXVALUE 8191 CYCLE
