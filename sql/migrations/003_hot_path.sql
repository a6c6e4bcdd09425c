-- 003: less work per charge and per order. Measured: docs/performance.md.
--
-- Foreign keys to users and stock go: their triggers run at every update of a wallet or a shelf, and their share
-- locks on hot rows stand in the way of the claims. Users and SKUs are never deleted, so it is enough to look when
-- a row that names one is written; the audit compares all of them.
ALTER TABLE ledgerlock.subscriptions DROP CONSTRAINT subscriptions_user_id_currency_fkey;
ALTER TABLE ledgerlock.orders DROP CONSTRAINT orders_user_id_currency_fkey;
ALTER TABLE ledgerlock.order_lines DROP CONSTRAINT order_lines_sku_id_fkey;
ALTER TABLE ledgerlock.users DROP CONSTRAINT users_user_id_currency_key;

CREATE FUNCTION ledgerlock.names_a_wallet() RETURNS trigger LANGUAGE plpgsql SET search_path = ledgerlock, pg_temp AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM users WHERE user_id = NEW.user_id AND currency = NEW.currency) THEN
    RAISE foreign_key_violation USING
      MESSAGE = format('%s: there is no user %s with a wallet in %s', TG_TABLE_NAME, NEW.user_id, NEW.currency);
  END IF;
  RETURN NULL;
END $$;
COMMENT ON FUNCTION ledgerlock.names_a_wallet IS
  'Trigger: the user of a new row exists and has a wallet in its currency. SQLSTATE 23503 otherwise.';

CREATE FUNCTION ledgerlock.names_a_sku() RETURNS trigger LANGUAGE plpgsql SET search_path = ledgerlock, pg_temp AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM stock WHERE sku_id = NEW.sku_id) THEN
    RAISE foreign_key_violation USING MESSAGE = format('%s: there is no SKU %s', TG_TABLE_NAME, NEW.sku_id);
  END IF;
  RETURN NULL;
END $$;
COMMENT ON FUNCTION ledgerlock.names_a_sku IS
  'Trigger: the SKU of a new row exists. SQLSTATE 23503 otherwise.';

REVOKE ALL ON FUNCTION ledgerlock.names_a_wallet, ledgerlock.names_a_sku FROM PUBLIC;

CREATE TRIGGER names_a_wallet AFTER INSERT ON ledgerlock.subscriptions
  FOR EACH ROW EXECUTE FUNCTION ledgerlock.names_a_wallet();
CREATE TRIGGER names_a_wallet AFTER INSERT ON ledgerlock.orders
  FOR EACH ROW EXECUTE FUNCTION ledgerlock.names_a_wallet();
CREATE TRIGGER names_a_sku AFTER INSERT ON ledgerlock.order_lines
  FOR EACH ROW EXECUTE FUNCTION ledgerlock.names_a_sku();

-- Every charge moves its subscription to the next due date, and so enters each of its indexes anew. This one
-- cost 12 % of a charge and served the importer alone, which looks for itself, one import at a time.
ALTER TABLE ledgerlock.subscriptions DROP CONSTRAINT subscriptions_user_id_plan_anchor_at_key;

-- A unique key that begins with whole numbers is compared faster than one that begins with text, and one index
-- less is one insert less: the number that a row got as it was written stays, without an index.
ALTER TABLE ledgerlock.transfers DROP CONSTRAINT transfers_pkey;
ALTER TABLE ledgerlock.transfers DROP CONSTRAINT one_transfer_per_source;
ALTER TABLE ledgerlock.transfers ADD CONSTRAINT one_transfer_per_source PRIMARY KEY (source, leg, kind);
COMMENT ON COLUMN ledgerlock.transfers.transfer_id IS 'In the order of writing; not a key: (kind, source, leg) is.';
ALTER TABLE ledgerlock.stock_movements DROP CONSTRAINT stock_movements_pkey;
ALTER TABLE ledgerlock.stock_movements DROP CONSTRAINT one_movement_per_source;
ALTER TABLE ledgerlock.stock_movements ADD CONSTRAINT one_movement_per_source PRIMARY KEY (source, sku_id, kind);
COMMENT ON COLUMN ledgerlock.stock_movements.movement_id IS 'In the order of writing; not a key: (sku_id, kind, source) is.';

-- A batch updates most rows of the pages that it meets: every row needs room for its next version on its own
-- page, or the update leaves the page and enters every index anew.
ALTER TABLE ledgerlock.users SET (fillfactor = 45);
ALTER TABLE ledgerlock.subscriptions SET (fillfactor = 45);
ALTER TABLE ledgerlock.orders SET (fillfactor = 45);
ALTER INDEX ledgerlock.subscriptions_pkey SET (fillfactor = 50);

-- Neighbours in one bucket: a batch then finds its rows, and their places in every index, close together.
ALTER TABLE ledgerlock.subscriptions DROP COLUMN bucket;
ALTER TABLE ledgerlock.subscriptions
  ADD COLUMN bucket smallint GENERATED ALWAYS AS ((user_id / 32 % 64)::smallint) STORED;
COMMENT ON COLUMN ledgerlock.subscriptions.bucket IS
  'Keeps workers apart: each walks the buckets from its own place. Runs of 32 users share one. A hint, never a guarantee.';
CREATE INDEX subscriptions_due ON ledgerlock.subscriptions (bucket, next_due_at)
  WHERE state IN ('active', 'past_due');
