-- The unguarded tables: what the same work comes to under the plain lock. Nothing is checked, no row has a fence, and no key
-- forbids a second charge or a second sale.
--   wallets.charges, stock.sold, items.charged, items.again  counted as a charge is written, in rows that it writes anyway, so that a look at
--                   the figures costs the same after an hour as after a minute: charges, units, periods charged once or oftener (from the
--                   first one on), charges of a period that was charged already
--   stock.oversold  units sold above those received, up to the last stocktaking
--   stock.portion   units of a delivery, which comes some seconds after out_at, when nothing was left
--   items.done      periods that are charged; of an order 1 when it is decided
-- Columns: none. Locks: ACCESS EXCLUSIVE on the new tables.
CREATE SCHEMA ledgerlock_plain
  CREATE TABLE wallets (user_id bigint PRIMARY KEY, balance_minor bigint NOT NULL, by_card boolean NOT NULL, charges bigint NOT NULL DEFAULT 0)
  CREATE TABLE stock (sku_id bigint PRIMARY KEY, on_hand bigint NOT NULL, received bigint NOT NULL, oversold bigint NOT NULL,
                      portion bigint NOT NULL, sold bigint NOT NULL DEFAULT 0, out_at timestamptz)
  CREATE TABLE items (kind text NOT NULL, item_id bigint NOT NULL, user_id bigint NOT NULL, sku_id bigint NOT NULL, qty bigint NOT NULL,
                      amount_minor bigint NOT NULL, periods bigint NOT NULL, done bigint NOT NULL DEFAULT 0,
                      charged bigint NOT NULL DEFAULT 0, again bigint NOT NULL DEFAULT 0)
  CREATE INDEX items_due ON items (item_id) WHERE done < periods
  CREATE INDEX items_again ON items (again) WHERE again > 0
  CREATE INDEX items_by_id ON items (kind, item_id)
  CREATE TABLE charges (kind text NOT NULL, item_id bigint NOT NULL, period_no bigint NOT NULL, sku_id bigint NOT NULL,
                        qty bigint NOT NULL, amount_minor bigint NOT NULL, charged_at timestamptz NOT NULL DEFAULT clock_timestamp())
  CREATE TABLE faults (fault_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, action text NOT NULL,
                       lasts_ms bigint NOT NULL)
  CREATE TABLE figures (charges bigint NOT NULL, charged_twice bigint NOT NULL, oversold bigint NOT NULL,
                        wrong_totals bigint NOT NULL, seasons bigint NOT NULL, since timestamptz NOT NULL)
