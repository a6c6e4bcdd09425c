-- Lines that contradict the database: the reason and the raw line. Locks: none.
CREATE TEMPORARY TABLE import_bad (
  kind   text NOT NULL,
  line   bigint NOT NULL,
  reason text NOT NULL,
  raw    text,
  PRIMARY KEY (kind, line)
) ON COMMIT DROP
