-- Lines that the database knows better than their file: why, and as they stand there. Locks: none.
CREATE TEMPORARY TABLE import_bad (
  kind   text NOT NULL,
  line   bigint NOT NULL,
  reason text NOT NULL,
  raw    text,
  PRIMARY KEY (kind, line)
) ON COMMIT DROP
