-- migrate_expect_objects: tells sql/audit/schema_as_built, to the end of the transaction, which objects to expect.
-- $1 text: a line for each. Column: the setting. No lock.
SELECT set_config('ledgerlock.objects', $1::text, true);
