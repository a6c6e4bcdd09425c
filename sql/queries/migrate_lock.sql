-- migrate_lock: one piece of one migration at a time in this database; the others wait here.
-- The key is the text 'ledgerlk' read as a number. Other statements take advisory locks too, each with a key of its own:
-- bell_watch, import_lock and seed_lock.
-- No parameters. Column: done. Lock: advisory, to the end of the transaction.
SELECT 1 AS done FROM pg_catalog.pg_advisory_xact_lock(7810759523990400107);
