-- migrate_list_applied: everything that was ever applied.
-- No parameters. Columns: kind, name, checksum. No lock.
SELECT kind, name, checksum FROM schema_migrations ORDER BY kind DESC, name;
