-- One row per order of the file, filled by import_make_heads. Locks: none. Gone at the end of the transaction.
CREATE TEMPORARY TABLE import_heads (
  order_ref    text COLLATE "C" NOT NULL,
  customer_ref text COLLATE "C" NOT NULL,
  placed_at    timestamptz NOT NULL,
  no           bigint NOT NULL,
  request_hash bytea NOT NULL
) ON COMMIT DROP
