-- migrate_record_applied: records the migration or function that the same transaction has just applied.
-- $1 kind text, $2 name text, $3 checksum text. No columns.
-- Locks: the one row. A function may be applied again, a migration never.
INSERT INTO schema_migrations AS m (kind, name, checksum) VALUES ($1, $2, $3)
ON CONFLICT (kind, name) DO UPDATE
   SET checksum = excluded.checksum, applied_at = excluded.applied_at, applied_by = excluded.applied_by
 WHERE m.kind = 'function';
