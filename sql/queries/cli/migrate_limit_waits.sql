-- migrate_limit_waits: to the end of the transaction, no statement waits longer than two seconds for a lock. An ALTER that
-- waits has everybody behind it wait too.
-- No parameters. Column: the setting. No lock.
SELECT set_config('lock_timeout', '2s', true);
