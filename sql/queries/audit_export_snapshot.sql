-- audit_export_snapshot: a name by which other connections see what this transaction sees, while it lasts.
-- Column: snapshot. Locks: none.
SELECT pg_export_snapshot() AS snapshot;
