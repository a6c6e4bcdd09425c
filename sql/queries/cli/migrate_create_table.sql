-- migrate_create_table: the record of what was applied; made in the transaction of the first migration,
-- right after it made the schema. 002 grants workers SELECT on it.
-- No parameters, no columns. Locks: none that anyone waits for.
CREATE TABLE schema_migrations (
  kind       text COLLATE "C" NOT NULL CHECK (kind IN ('migration', 'function')),
  name       text COLLATE "C" NOT NULL,
  checksum   text COLLATE "C" NOT NULL,
  applied_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  applied_by text NOT NULL DEFAULT current_user,
  PRIMARY KEY (kind, name)
);
