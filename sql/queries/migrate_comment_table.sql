-- migrate_comment_table: tells readers of the schema what the record is.
-- No parameters, no columns. No lock that anyone waits for.
COMMENT ON TABLE ledgerlock.schema_migrations IS
  'What `ledgerlock migrate` applied: migrations once, functions again whenever their text changed. checksum is the SHA-256 of the text.';
