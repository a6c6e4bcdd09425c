-- migrate_read_database: what keeps this database from being one of ledgerlock.
-- No parameters. Columns: its name, its encoding, is it a template, is the server a standby, are its transactions read-only. No lock.
SELECT datname::text, pg_encoding_to_char(encoding)::text, datistemplate, pg_is_in_recovery(),
       current_setting('transaction_read_only') = 'on'
  FROM pg_catalog.pg_database
 WHERE datname = current_database();
