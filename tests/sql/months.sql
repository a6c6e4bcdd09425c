-- Months: a month that is over is sealed, what is sealed never changes, and the audit finds what was changed all the same.
-- Two users are charged from December on, and one of them has ordered in January.
\set shop 'SELECT t.user(1, 1000), t.user(2, 300), t.sku(1, ''A'', 10, 70), t.subscription(1, 1, 100, ''2023-12-05Z''), t.subscription(2, 2, 100, ''2024-01-05Z''), t.order(1, ''A3'', ''k'', ''2024-01-10Z''), receive_stock(''A'', ''d'', 5, ''2024-01-15Z''); SELECT t.serve(''2024-01-11Z''), t.bill(''2024-02-20Z'');'
\set closed 'SELECT close_month(''2023-12-01''), close_month(''2024-01-01'');'
SELECT no_plan();

-- True if an invariant of the audit is broken behind a change, which is undone. The rows of closed months are read for one of them alone.
CREATE FUNCTION pg_temp.finds(p_invariant text, p_change text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  v_rows bigint;
BEGIN
  PERFORM set_config('ledgerlock.sealed', CASE p_invariant WHEN 'sealed_rows_keep_their_sums' THEN 'on' ELSE 'off' END, true);
  BEGIN
    EXECUTE p_change;
    EXECUTE (SELECT format('SELECT count(*) FROM (%s) AS found', sql) FROM t.invariants WHERE name = p_invariant) INTO v_rows;
    RAISE EXCEPTION SQLSTATE 'TUNDO';
  EXCEPTION WHEN SQLSTATE 'TUNDO' THEN NULL;
  END;
  RETURN v_rows > 0;
END $$;

-- ---- what keeps a month open ----

-- Guarantee: Months are closed in their order, once, and by the owner of the schema.
BEGIN; SELECT t.test('months_are_closed_in_their_order_and_once');
:shop
SELECT t.would(answer, format('close_month(%L)', month), words, who) FROM (VALUES
  ('42501', '2023-12-01', 'not by support', 'ledgerlock_support'), ('LL002', '2023-05-01', 'nothing was booked in it', 'ledgerlock_owner'),
  ('LL003', '2024-01-01', 'December is open', 'ledgerlock_owner'), ('4', '2023-12-01', 'a charge, and three entries of ledger', 'ledgerlock_owner'))
  AS v (answer, month, words, who);
SELECT t.would('40001', $$close_month('2023-12-01', 'of other rows')$$, 'its rows are not those that were proved', 'ledgerlock_owner');
SELECT t.would('4', $$close_month('2023-12-01', month_digest('2023-12-01'))$$, 'its rows are those that were proved', 'ledgerlock_owner');
:closed
SELECT t.would('LL003', format('close_month(%L)', month), 'closed already', 'ledgerlock_owner') FROM unnest('{2023-12-01,2024-01-01}'::date[]) AS month;
SELECT is(first_open(), '2024-02-01Z', 'February is the first that is open');
SELECT t.sound('2024-02-20Z');
ROLLBACK;

-- Guarantee: A month is closed only when each of its periods is settled and each of its orders decided.
BEGIN; SELECT t.test('month_with_something_open_stays_open');
:shop
SELECT close_month('2023-12-01');
SELECT t.would(answer, format('t.then(%L, %L)', before, $$SELECT close_month('2024-01-01')$$), words, 'postgres') FROM (VALUES
  ('7', 'SELECT 1', 'nothing is open'),
  ('LL003', $$UPDATE subscriptions SET state = 'unpaid', retries = 1, next_period_no = 0 WHERE subscription_id = 2$$, 'a period that is not paid'),
  ('LL003', $$UPDATE subscriptions SET state = 'parked', next_period_no = 0 WHERE subscription_id = 2$$, 'a subscription that is parked'),
  ('LL003', $$UPDATE subscriptions SET next_period_no = 0, next_due_at = anchor_at WHERE subscription_id = 2$$, 'a period that no worker has tried'),
  ('7', $$UPDATE subscriptions SET state = 'unpaid', retries = 1, next_period_no = 0, cancel_at = anchor_at WHERE subscription_id = 2$$,
   'a period that begins at the end is not owed'),
  ('LL003', $$SELECT t.order(1, 'A1', 'l', '2024-01-31 23:59:59Z')$$, 'an order that is not decided'),
  ('7', $$SELECT t.order(1, 'A1', 'l', '2024-02-01Z')$$, 'an order of February')) AS v (answer, before, words);
ROLLBACK;

BEGIN; SELECT t.test('month_is_not_closed_before_it_is_over_for_a_day');
SET LOCAL ledgerlock.repair = on;
DELETE FROM months WHERE month < date_trunc('month', now());
SELECT throws_like(format('SELECT close_month(%L)', date_trunc('month', now())::date), '%is not over for a day yet%', 'the month that is running');
ROLLBACK;

-- ---- what is closed stays as it is ----

-- A person who repairs by hand is refused, too, and so is a superuser for whom triggers are switched off: a CHECK is none.
-- Guarantee: A closed month never changes: no write of anybody's adds, changes, moves or deletes a row of it, and the owner may not repair it
-- either.
BEGIN; SELECT t.test('closed_month_refuses');
:shop
:closed
CREATE TEMP TABLE writes (by_check boolean, of_seals boolean, statement text);
INSERT INTO writes VALUES
  (true, false, $$UPDATE charges SET worker = 'mallory' WHERE period_start < '2024-02-01Z'$$),
  (true, false, $$UPDATE charges SET amount_minor = 1 WHERE period_start < '2024-02-01Z'$$),
  (true, false, $$INSERT INTO charges SELECT subscription_id + 7, period_no, user_id, period_start, period_end, amount_minor, state, tries, fence, worker, charged_at FROM charges_2024_01$$),
  (true, false, $$UPDATE charges SET period_start = '2024-01-06Z' WHERE period_start = '2024-02-05Z'$$),
  (false, false, 'DELETE FROM charges_2023_12'), (false, false, 'TRUNCATE charges_2023_12'), (false, false, 'TRUNCATE charges'),
  (false, false, 'UPDATE orders SET total_minor = 1 WHERE order_id = 1'), (false, false, $$UPDATE orders SET placed_at = '2024-03-05Z' WHERE order_id = 1$$),
  (false, false, 'DELETE FROM orders WHERE order_id = 1'), (false, false, 'UPDATE order_lines SET qty = 1'), (false, false, 'DELETE FROM order_lines'),
  (false, false, 'TRUNCATE order_lines'), (false, false, 'TRUNCATE orders CASCADE'),
  (false, false, 'UPDATE wallet_entries SET amount_minor = 1'), (false, false, $$UPDATE wallet_entries SET at = '2024-02-01Z'$$), (false, false, 'DELETE FROM wallet_entries'),
  (false, false, $$INSERT INTO wallet_entries (user_id, kind, idempotency_key, amount_minor, at) VALUES (1, 'deposit', '', 1, '2024-01-31Z')$$), (false, false, 'TRUNCATE wallet_entries'),
  (false, false, 'UPDATE stock_entries SET qty = 1'), (false, false, 'DELETE FROM stock_entries'),
  (false, false, $$SELECT t.order(1, 'A1', 'late', '2024-01-05Z')$$), (false, false, $$SELECT t.subscription(9, 1, 1, '2024-01-05Z')$$),
  (false, false, $$SELECT deposit(1, 'USD', 5, 'late', '2024-01-05Z')$$), (false, false, $$SELECT make_months('2023-06-01Z', '2023-06-01Z')$$),
  (false, true, 'UPDATE seals SET total = 0'), (false, true, 'DELETE FROM seals'), (false, true, 'UPDATE sealed_wallets SET net_minor = 0');
CREATE FUNCTION pg_temp.is_refused(p_statement text, p_setting text, p_value text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  v_is_refused boolean;
BEGIN
  PERFORM set_config(p_setting, p_value, true);
  v_is_refused := (t.ask(p_statement, session_user::text, true)).words IS NOT NULL;
  PERFORM set_config('session_replication_role', 'origin', true);
  RETURN v_is_refused;
END $$;
SELECT ok(pg_temp.is_refused(statement, 'ledgerlock.repair', 'off'), statement) FROM writes;
SELECT ok(pg_temp.is_refused(statement, 'ledgerlock.repair', 'on'), 'to repair: ' || statement) FROM writes WHERE NOT of_seals;
SELECT ok(pg_temp.is_refused(statement, 'session_replication_role', 'replica'), 'without triggers: ' || statement) FROM writes WHERE by_check;
ROLLBACK;

-- Guarantee: Nobody orders, subscribes, or books money or units in a closed month.
BEGIN; SELECT t.test('closed_month_takes_no');
:shop
ALTER TABLE subscriptions ALTER subscription_id RESTART WITH 100;
SELECT t.subscription(3, 1, 100, '2024-01-06Z', 'year'), t.bill('2024-02-20Z');
:closed
SELECT t.would(state, call, NULL, 'postgres') FROM (VALUES
  ('LL004', $$place_order(1, 'late', t.lines('A1'), '2024-01-20Z')$$), ('LL004', $$subscribe(1, 'late', 5, 'USD', 'month', 1, '2024-01-20Z', 0, 'late')$$),
  ('23001', $$deposit(1, 'USD', 5, 'late', '2024-01-20Z')$$), ('23001', $$refund(1, 'charge', 1, 1, 5, 'late', 'late', '2024-01-20Z')$$),
  ('23001', $$withdraw(1, 'USD', 5, 'late', 'late', '2024-01-20Z')$$), ('23001', $$change_now(1, 3, 'max', 1, 200, 'late', '2024-01-20Z')$$),
  ('23001', $$receive_stock('A', 'late', 5, '2024-01-20Z')$$), ('23001', $$adjust_stock('A', -1, 'late', 'late', '2024-01-20Z')$$),
  ('23001', $$return_units(1, 1, 'A', 1, 'late', 'late', '2024-01-20Z')$$)) AS v (state, call);
ROLLBACK;

-- ---- what is before the first closed month ----

-- Guarantee: A deposit, an order and a delivery need no month: none is made for them, and the first month that is closed seals what is before it.
BEGIN; SELECT t.test('what_needs_no_month_makes_none');
:shop
CREATE TEMP TABLE before AS SELECT count(*) AS n, min(month) AS first FROM months;
SELECT deposit(1, 'USD', 500, 'old', '2010-02-05Z'), receive_stock('A', 'old', 2, '2010-03-05Z'), t.order(1, 'A1', 'old', '2010-04-05Z');
SELECT is(t.serve('2024-02-20Z'), '1 fulfilled, 0 rejected', 'the order is served');
SELECT is((SELECT (count(*), min(month)) FROM months), (n, first), 'no month was made') FROM before;
SELECT is(close_month('2023-12-01'), 8::bigint, 'December, and the four entries of 2010');
SELECT t.sound('2024-02-20Z');
SELECT t.would('23001', $$deposit(1, 'USD', 5, 'older', '2010-02-06Z')$$, 'what is before it is closed, too', 'postgres');
ROLLBACK;

-- Money and stock moved in months that have no row of months: before June 2022, and between it and December 2023, which are both closed.
-- Guarantee: The first month that is closed seals all before it, and each one after it what lies between.
BEGIN; SELECT t.test('closed_month_seals_what_is_before_it');
:shop
SELECT make_months('2022-06-01Z', '2022-06-01Z'), deposit(1, 'USD', 50, 'early', '2022-03-05Z'), deposit(1, 'USD', 60, 'between', '2023-02-05Z'),
       receive_stock('A', 'early', 7, '2022-03-05Z'), t.order(1, 'A1', 'early', '2022-03-06Z'), t.order(1, 'A2', 'between', '2023-02-06Z'),
       t.order(2, 'A9999', 'short', '2022-03-06Z');
SELECT is(t.serve('2024-02-20Z'), '2 fulfilled, 1 rejected', 'served late');
SELECT t.sound('2024-02-20Z');
SELECT is(close_month('2022-06-01'), 4::bigint, 'a deposit, a payment, a delivery and a sale');
SELECT is((SELECT net_minor FROM sealed_wallets WHERE user_id = 1), 50 - 70::numeric, 'the wallet before July 2022');
SELECT is((received, sold)::text, '(7,1)', 'the stock before July 2022') FROM sealed_stock;
SELECT t.sound('2024-02-20Z');
CREATE TEMP TABLE before_it (change text);
INSERT INTO before_it VALUES
  ($$SELECT deposit(1, 'USD', 5, 'late', '2022-03-05Z')$$), ($$SELECT receive_stock('A', 'late', 5, '1999-03-05Z')$$),
  ($$SELECT t.order(1, 'A1', 'late', '2022-03-06Z')$$), ($$SELECT make_months('2022-03-01Z', '2022-03-01Z')$$),
  ($$UPDATE wallet_entries SET amount_minor = 51 WHERE idempotency_key = 'early'$$), ($$DELETE FROM stock_entries WHERE idempotency_key = 'early'$$),
  ($$UPDATE orders SET total_minor = 71 WHERE idempotency_key = 'early'$$), ($$UPDATE order_lines SET qty = 2 WHERE order_id IN (SELECT order_id FROM orders WHERE idempotency_key = 'early')$$);
SET LOCAL ledgerlock.repair = on;
SELECT ok((t.ask(change, session_user::text, true)).words IS NOT NULL, change) FROM before_it;
SELECT is(pg_temp.finds('sealed_rows_keep_their_sums', format('SET LOCAL session_replication_role = replica; %s; SET LOCAL session_replication_role = origin', change)), true,
          'found: ' || change) FROM before_it WHERE change ~ '^(UPDATE|DELETE)';
SELECT is(pg_temp.finds('sealed_rows_keep_their_sums', 'SELECT 1'), false, 'else it holds');
SELECT close_month('2023-12-01'), close_month('2024-01-01');
SELECT is((SELECT net_minor FROM sealed_wallets WHERE user_id = 1), 50 - 70 + 60 - 140 + 1000 - 2 * 100 - 210::numeric, 'the wallet before February 2024');
SELECT t.sound('2024-02-20Z');
ROLLBACK;

-- ---- what is changed all the same ----

-- Guarantee: A change of what is sealed, or of a seal, is found.
BEGIN; SELECT t.test('audit_finds_what_was_changed');
:shop
:closed
SET LOCAL ledgerlock.repair = on;
SELECT is(pg_temp.finds(invariant, 'SELECT 1'), false, invariant || ' holds')
  FROM unnest('{months_as_built,sealed_rows_keep_their_sums,seals_add_up,balance_is_sum_of_ledger,charges_have_their_batch,charge_matches_subscription}'::text[]) AS invariant;
SELECT is(pg_temp.finds(invariant, change), true, invariant || ': ' || change) FROM (VALUES
  ('months_as_built', 'ALTER TABLE charges_2024_01 DROP CONSTRAINT month_is_closed'),
  ('months_as_built', 'ALTER TABLE charges_2024_01 DISABLE TRIGGER month_is_closed'),
  ('months_as_built', 'DROP TABLE charges_2023_12'),
  ('sealed_rows_keep_their_sums', 'ALTER TABLE charges_2023_12 DISABLE TRIGGER ALL; DELETE FROM charges_2023_12; ALTER TABLE charges_2023_12 ENABLE TRIGGER ALL'),
  ('sealed_rows_keep_their_sums', $$ALTER TABLE charges_2024_01 DROP CONSTRAINT month_is_closed; UPDATE charges_2024_01 SET charged_at = charged_at + interval '1 hour'$$),
  ('sealed_rows_keep_their_sums', $$ALTER TABLE orders DISABLE TRIGGER ALL; UPDATE orders SET total_minor = total_minor - 1; ALTER TABLE orders ENABLE TRIGGER ALL$$),
  ('sealed_rows_keep_their_sums', $$ALTER TABLE orders DISABLE TRIGGER ALL; UPDATE orders SET state = 'rejected', reason = 'insufficient_funds'; ALTER TABLE orders ENABLE TRIGGER ALL$$),
  ('sealed_rows_keep_their_sums', $$ALTER TABLE orders DISABLE TRIGGER ALL; UPDATE orders SET placed_at = '2024-02-10Z', decided_at = '2024-02-10Z'; ALTER TABLE orders ENABLE TRIGGER ALL$$),
  ('sealed_rows_keep_their_sums', $$ALTER TABLE order_lines DISABLE TRIGGER ALL; UPDATE order_lines SET qty = 2; ALTER TABLE order_lines ENABLE TRIGGER ALL$$),
  ('sealed_rows_keep_their_sums', $$ALTER TABLE order_lines DISABLE TRIGGER ALL; INSERT INTO order_lines VALUES (1, 1, 0, 1); ALTER TABLE order_lines ENABLE TRIGGER ALL$$),
  ('sealed_rows_keep_their_sums', $$ALTER TABLE wallet_entries DISABLE TRIGGER ALL; UPDATE wallet_entries SET amount_minor = amount_minor + 1 WHERE user_id = 1; ALTER TABLE wallet_entries ENABLE TRIGGER ALL$$),
  ('sealed_rows_keep_their_sums', $$ALTER TABLE wallet_entries DISABLE TRIGGER ALL; UPDATE wallet_entries SET user_id = 2, idempotency_key = 'another' WHERE user_id = 1; ALTER TABLE wallet_entries ENABLE TRIGGER ALL$$),
  ('sealed_rows_keep_their_sums', $$ALTER TABLE wallet_entries DISABLE TRIGGER ALL; INSERT INTO wallet_entries (user_id, kind, idempotency_key, amount_minor, at) VALUES (1, 'deposit', '', 1, '2023-01-01Z'); ALTER TABLE wallet_entries ENABLE TRIGGER ALL$$),
  ('sealed_rows_keep_their_sums', $$ALTER TABLE stock_entries DISABLE TRIGGER ALL; DELETE FROM stock_entries; ALTER TABLE stock_entries ENABLE TRIGGER ALL$$),
  ('seals_add_up', $$UPDATE seals SET total = total + 1 WHERE table_name = 'ledger' AND kind LIKE 'charge %'$$),
  ('seals_add_up', $$DELETE FROM seals WHERE (month, table_name) = ('2024-01-01', 'charges')$$),
  ('seals_add_up', $$DELETE FROM seals WHERE month = '2024-01-01'$$),
  ('seals_add_up', 'UPDATE sealed_wallets SET net_minor = net_minor + 1 WHERE user_id = 2'),
  ('seals_add_up', 'UPDATE sealed_stock SET received = received + 1'),
  ('balance_is_sum_of_ledger', 'UPDATE sealed_wallets SET net_minor = net_minor + CASE user_id WHEN 2 THEN 1 ELSE -1 END'),
  ('charges_have_their_batch', $$INSERT INTO sealed_batches VALUES (7, '2024-02-02', 'w', 1)$$),
  ('charge_matches_subscription', $$INSERT INTO charges SELECT subscription_id, 0, user_id, period_start, period_end, amount_minor, state, tries, fence, worker, charged_at FROM charges WHERE (subscription_id, period_no) = (1, 2)$$)) AS v (invariant, change);
ROLLBACK;

SELECT t.done(138);
