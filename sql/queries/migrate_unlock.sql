-- migrate_unlock: lets the next migration in.
-- No parameters. Column: whether the lock was held. Lock: frees the one of migrate_lock.
SELECT pg_catalog.pg_advisory_unlock(7810759523990400107) AS held;
