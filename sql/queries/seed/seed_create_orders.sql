-- Orders as clients send them, until they are stored. Locks: none. Gone at the end of the transaction.
CREATE TEMPORARY TABLE seed_orders (
  order_id      bigint NOT NULL,
  user_id       bigint NOT NULL,
  key           text NOT NULL,
  lines         jsonb NOT NULL,
  total_minor   bigint NOT NULL,
  placed_at     timestamptz NOT NULL,
  is_sent_twice boolean NOT NULL
) ON COMMIT DROP
