-- Staging of the good lines of a subscriptions file. Locks: none. Gone at the end of the transaction.
CREATE TEMPORARY TABLE import_subscriptions (
  line         bigint PRIMARY KEY,
  customer_ref text COLLATE "C" NOT NULL,
  plan         text COLLATE "C" NOT NULL,
  amount       bigint NOT NULL,
  unit         text COLLATE "C" NOT NULL,
  every        integer NOT NULL,
  anchor_at    timestamptz NOT NULL,
  raw          text
) ON COMMIT DROP
