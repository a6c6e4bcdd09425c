-- audit_export_snapshot: a name for the snapshot of this transaction, in which another connection may read.
-- Columns: the name. Locks: none.
SELECT pg_export_snapshot() AS name;
