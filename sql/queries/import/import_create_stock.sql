-- Staging of the good lines of a stock file. Locks: none. Gone at the end of the transaction.
CREATE TEMPORARY TABLE import_stock (
  line       bigint PRIMARY KEY,
  sku        text COLLATE "C" NOT NULL,
  quantity   bigint NOT NULL,
  unit_price bigint NOT NULL,
  raw        text
) ON COMMIT DROP
