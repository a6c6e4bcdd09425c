-- migrate_comment_table: the comment of the table of migrations.
-- No parameters, no columns. Locks: the new table, which nobody waits for.
COMMENT ON TABLE schema_migrations IS
  'What `ledgerlock migrate` applied: migrations once, functions again whenever their text changed. checksum is the SHA-256 of the text.';
