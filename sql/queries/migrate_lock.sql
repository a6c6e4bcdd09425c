-- migrate_lock: one migration at a time in this database; the others wait here.
-- The key is the text 'ledgerlk' read as a number. Other statements take advisory locks too, each with a key of its own:
-- pool_lock_epoch, import_lock and seed_lock.
-- No parameters. Column: done. Lock: session-level advisory lock, freed by migrate_unlock or the end of the session.
SELECT 1 AS done FROM pg_catalog.pg_advisory_lock(7810759523990400107);
