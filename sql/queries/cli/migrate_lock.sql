-- migrate_lock: lets one migration or function at a time be applied in this database; others wait here.
-- The key is the text 'ledgerlk' read as a number. Other statements take advisory locks too, each with a key of its own:
-- import_lock and seed_lock.
-- No parameters. Column: done. Lock: advisory, to the end of the transaction.
SELECT 1 AS done FROM pg_catalog.pg_advisory_xact_lock(7810759523990400107);
