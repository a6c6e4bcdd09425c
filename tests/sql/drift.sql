-- schema_as_built and months_as_built: what somebody changed by hand is named; what he added is left alone. That the pool does not start over such a schema, and
-- the audit says so, is told in tests/verbs/test_drift.c.
SELECT no_plan();

-- The names that the invariant tells behind a change, which is undone; null: none. The list of objects is the program's.
CREATE FUNCTION pg_temp.found(p_invariant text, p_change text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  v_found text;
BEGIN
  BEGIN
    EXECUTE p_change;
    EXECUTE (SELECT format('SELECT string_agg(what || '': '' || detail, ''; '') FROM (%s) AS found', sql) FROM t.invariants WHERE name = p_invariant) INTO v_found;
    RAISE EXCEPTION SQLSTATE 'TUNDO';
  EXCEPTION WHEN SQLSTATE 'TUNDO' THEN NULL;
  END;
  RETURN v_found;
END $$;
\set objects 'SELECT set_config(''ledgerlock.objects'', sql, true) <> '''' FROM t.texts WHERE name = ''objects''; SELECT make_months(''2024-01-01Z'', ''2024-01-01Z''); CREATE FUNCTION drop_it() RETURNS trigger LANGUAGE plpgsql AS ''BEGIN RETURN NULL; END'';'

BEGIN; SELECT t.test('every_object_is_in_the_list');
:objects
SELECT is(pg_temp.found('schema_as_built', 'SELECT 1'), NULL, 'none is changed');
SELECT is(pg_temp.found('months_as_built', 'SELECT 1'), NULL, 'nor is a month');
SELECT is(pg_temp.found('schema_as_built', $$SELECT make_months('2010-01-01Z', '2010-12-31Z')$$), NULL, 'a month is no object');
SET LOCAL ledgerlock.objects = '';
SELECT is(regexp_count(pg_temp.found('schema_as_built', 'DROP FUNCTION drop_it'), '(^|; )(table|column|constraint|index|trigger|function|view|grant|role|migration) '),
          (SELECT regexp_count(rtrim(sql, E'\n'), E'\n') + 1 FROM t.texts WHERE name = 'objects'), 'without a list each is told');
ROLLBACK;

CREATE TEMP TABLE changes (change text, told text);
INSERT INTO changes VALUES
  ('ALTER TABLE charges DROP CONSTRAINT one_charge_per_period', 'constraint charges.one_charge_per_period: it is missing'),
  ('ALTER TABLE users DROP CONSTRAINT balance_never_negative', 'constraint users.balance_never_negative: it is missing'),
  ('ALTER TABLE stock DROP CONSTRAINT on_hand_never_negative, ADD CONSTRAINT on_hand_never_negative CHECK (on_hand >= -9)', 'constraint stock.on_hand_never_negative: it is now: CHECK'),
  ('ALTER TABLE stock DROP CONSTRAINT on_hand_never_negative, ADD CONSTRAINT on_hand_never_negative CHECK (on_hand >= 0) NOT VALID', 'NOT VALID'),
  ('ALTER TABLE charges ALTER fence DROP NOT NULL', 'column charges.fence: it is now: bigint'),
  ('DROP INDEX subscriptions_due', 'index subscriptions_due: it is missing'),
  ($$UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'subscriptions_due'::regclass$$, 'INVALID'),
  ('ALTER TABLE subscriptions DISABLE TRIGGER ALL', 'DISABLED'),
  ('ALTER TABLE orders ENABLE ALWAYS TRIGGER decided_orders_stay_so', 'EXECUTE FUNCTION refuse_change() ALWAYS'),
  ('ALTER TABLE orders ENABLE REPLICA TRIGGER decided_orders_stay_so', 'EXECUTE FUNCTION refuse_change() REPLICA'),
  ('ALTER TABLE wallet_entries DISABLE TRIGGER ALL; ALTER TABLE wallet_entries ENABLE TRIGGER USER', 'REFERENCES users(user_id) DISABLED'),
  ('ALTER TABLE stock DISABLE TRIGGER ALL; ALTER TABLE stock ENABLE TRIGGER USER', 'REFERENCES stock(sku_id) DISABLED'),
  ('ALTER TABLE wallet_entries DROP CONSTRAINT wallet_entry_has_a_user, ADD CONSTRAINT wallet_entry_has_a_user FOREIGN KEY (user_id) REFERENCES users NOT VALID',
   'REFERENCES users(user_id) NOT VALID'),
  ('ALTER TABLE lock_token SET UNLOGGED', 'table lock_token: it is now: UNLOGGED'),
  ('ALTER TABLE wallet_entries ENABLE ROW LEVEL SECURITY', 'table wallet_entries: it is now: permanent, rows are hidden by policies'),
  ($$ALTER TABLE batches ALTER recorded_at SET DEFAULT '2024-01-01Z'$$, $$DEFAULT '2024-01-01$$),
  ('ALTER TABLE orders ALTER fence DROP DEFAULT', 'column orders.fence: it is now: bigint NOT NULL'),
  ('ALTER TABLE batches ALTER batch_id DROP IDENTITY', 'column batches.batch_id: it is now: bigint NOT NULL'),
  ('CREATE OR REPLACE VIEW open_ledger AS SELECT * FROM ledger WHERE amount_minor < 5', 'view open_ledger: it is now'),
  ($$CREATE OR REPLACE FUNCTION resume_order(p_user_id bigint, p_order_id bigint) RETURNS boolean LANGUAGE sql AS 'SELECT true'$$,
   'function resume_order(p_user_id bigint, p_order_id bigint): it is now'),
  ('REVOKE EXECUTE ON FUNCTION first_open FROM ledgerlock_reader', 'grant ON FUNCTION first_open() TO ledgerlock_reader: it is missing'),
  ('GRANT DELETE ON charges TO ledgerlock_worker', 'grant ON charges TO ledgerlock_worker: it is now: DELETE, SELECT'),
  ('GRANT SELECT ON users TO PUBLIC', 'grant ON users TO PUBLIC: SELECT'),
  ('CREATE TRIGGER more BEFORE INSERT ON wallet_entries FOR EACH ROW EXECUTE FUNCTION drop_it()', 'trigger wallet_entries.more: CREATE TRIGGER'),
  ('CREATE RULE more AS ON DELETE TO workers DO INSTEAD NOTHING', 'rule workers.more: CREATE RULE'),
  ('GRANT ledgerlock_support TO ledgerlock_worker', 'role ledgerlock_worker: it is now: member of ledgerlock_support'),
  ('GRANT ledgerlock_owner TO ledgerlock_worker', 'role ledgerlock_worker: it is now: member of ledgerlock_owner'),
  ('ALTER ROLE ledgerlock_worker SUPERUSER', 'role ledgerlock_worker: it is now: superuser'),
  ('ALTER ROLE ledgerlock_worker BYPASSRLS', 'role ledgerlock_worker: it is now: passes policies'),
  ('ALTER ROLE ledgerlock_worker CREATEROLE', 'role ledgerlock_worker: it is now: makes roles');

-- Guarantee: A role of ours that may more than its rights is found. Roles belong to the whole server, so the change is seen by its own transaction alone.
BEGIN; SELECT t.test('change_of_an_object_is_named');
:objects
SELECT matches(pg_temp.found('schema_as_built', change), regexp_replace(told, '([().])', '\\\1', 'g'), change) FROM changes;
SELECT is(pg_temp.found('schema_as_built', addition), NULL, 'left alone: ' || addition) FROM unnest(ARRAY[
  'CREATE INDEX mine ON charges (charged_at)', 'ALTER TABLE charges ADD CHECK (amount_minor < 1000000000)', 'ALTER TABLE users ADD COLUMN mine text',
  'CREATE VIEW mine AS SELECT * FROM users', 'CREATE TRIGGER more AFTER INSERT ON wallet_entries FOR EACH ROW EXECUTE FUNCTION drop_it()',
  'GRANT pg_monitor TO ledgerlock_worker']) AS addition;
ROLLBACK;

-- Guarantee: A changed object that a program expects is found, also in a schema that a newer program has expanded.
BEGIN; SELECT t.test('change_in_an_expanded_schema_is_named');
:objects
INSERT INTO schema_migrations (kind, name, checksum) VALUES ('migration', '003_expand_notes', 'x'), ('function', 'note', 'x');
ALTER TABLE charges ADD COLUMN note text;
CREATE TABLE notes (note text);
GRANT SELECT ON notes TO ledgerlock_worker;
CREATE OR REPLACE FUNCTION resume_order(p_user_id bigint, p_order_id bigint) RETURNS boolean LANGUAGE sql SECURITY DEFINER SET search_path = ledgerlock, pg_temp AS 'SELECT true';
SELECT is(pg_temp.found('schema_as_built', 'SELECT 1'), NULL, 'what the newer program made and replaced is left alone');
SELECT matches(pg_temp.found('schema_as_built', change), regexp_replace(told, '([().])', '\\\1', 'g'), change) FROM (VALUES
  ('ALTER TABLE users DROP CONSTRAINT balance_never_negative', 'balance_never_negative: it is missing'), ('ALTER TABLE charges ALTER fence DROP NOT NULL', 'column charges.fence: it is now: bigint'),
  ('ALTER FUNCTION deposit(bigint, text, bigint, text, timestamptz) SECURITY INVOKER', 'function deposit('), ('GRANT DELETE ON charges TO ledgerlock_worker', 'it is now: DELETE, SELECT'),
  ('ALTER TABLE orders DISABLE TRIGGER orders_are_never_deleted', 'DISABLED')) AS v (change, told);
ROLLBACK;

BEGIN; SELECT t.test('partition_unlike_its_table_is_named');
:objects
SELECT matches(pg_temp.found('months_as_built', change), told, change) FROM (VALUES
  ('ALTER TABLE charges DETACH PARTITION charges_2024_01', 'the partition is missing'),
  ('ALTER TABLE charges ADD CONSTRAINT x CHECK (tries < 9) NOT VALID; ALTER TABLE charges_2024_01 VALIDATE CONSTRAINT x', 'constraint x is not that of its table'),
  ('ALTER TABLE charges_2024_01 DISABLE TRIGGER charges_are_never_deleted', 'trigger charges_are_never_deleted is not that of its table'),
  ('DROP TRIGGER charges_are_never_emptied ON charges_2024_01', 'trigger charges_are_never_emptied is not that of its table'),
  ('GRANT INSERT ON charges_2024_01 TO ledgerlock_worker', 'role ledgerlock_worker may INSERT'),
  ('ALTER TABLE charges_2024_01 SET UNLOGGED', 'it is UNLOGGED, or hides rows by policies'),
  ($$CREATE TABLE mine PARTITION OF charges FOR VALUES FROM ('1999-01-01') TO ('1999-02-01')$$, 'it is of no month'),
  ('ALTER TABLE charges_2024_01 ADD CONSTRAINT month_is_closed CHECK (false) NOT VALID', 'it is sealed, and its month is not closed'),
  ('CREATE TRIGGER more BEFORE INSERT ON charges_2024_01 FOR EACH ROW EXECUTE FUNCTION drop_it()', 'trigger more was added'),
  ('CREATE RULE more AS ON INSERT TO charges_2024_01 DO INSTEAD NOTHING', 'rule more was added'),
  ('ALTER TABLE charges_2024_01 ADD CONSTRAINT more CHECK (amount_minor < 5)', 'constraint more was added')) AS v (change, told);
ROLLBACK;

SELECT t.done(57);
