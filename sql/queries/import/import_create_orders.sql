-- Staging of the good lines of an orders file. Locks: none. Gone at the end of the transaction.
CREATE TEMPORARY TABLE import_orders (
  line         bigint PRIMARY KEY,
  order_ref    text COLLATE "C" NOT NULL,
  customer_ref text COLLATE "C" NOT NULL,
  sku          text COLLATE "C" NOT NULL,
  quantity     bigint NOT NULL,
  unit_price   bigint NOT NULL,
  placed_at    timestamptz NOT NULL,
  raw          text
) ON COMMIT DROP
