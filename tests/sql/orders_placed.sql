-- place_order, cancel_order and order_status: an order is recorded once per key of its user, and taken back until it is decided.
\set shop 'SELECT t.user(1, 1000), t.user(2, 1000), t.user(3, 0, ''EUR''), t.user(4, 0, ''BHD''), t.sku(65, ''A'', 10, 250), t.sku(70, ''B'', 5, 100), t.sku(71, ''DEAR'', 1, 9223372036854775807, ''BHD'');'
SELECT no_plan();

-- Guarantee: An order placed twice under one key is one order.
BEGIN; SELECT t.test('order_with_same_key_and_lines_is_the_same_order');
:shop
SELECT t.says('1', $$place_order(1, 'k', '[{"sku": "A", "qty": 2}]')$$);
SELECT t.says('1', $$place_order(1, 'k', '[{"qty": 2,  "sku": "A"}]')$$);
SELECT is(array_agg(total_minor), '{500}', 'one order, of the total of its lines') FROM orders;
SELECT is(array_agg(qty), '{2}', 'one line') FROM order_lines;
ROLLBACK;

-- Guarantee: An order placed twice with its lines in another order is one order.
BEGIN; SELECT t.test('order_with_its_lines_in_another_order_is_the_same_order');
:shop
SELECT t.says('1', $$place_order(1, 'k', t.lines('A2 B3'))$$);
SELECT t.says('1', $$place_order(1, 'k', t.lines('B3 A2'))$$);
SELECT t.says('1', $$place_order(1, 'k', t.lines('A1 B3 A1'))$$, 'also when one line comes in two parts');
SELECT t.says('LL001', $$place_order(1, 'k', t.lines('B2 A3'))$$, 'other quantities are another order');
ROLLBACK;

-- Guarantee: An order placed under a used key with other lines is refused.
BEGIN; SELECT t.test('order_with_same_key_and_other_lines_is_refused');
:shop
SELECT t.says('1', $$place_order(1, 'k', t.lines('A2'))$$);
SELECT t.says('LL001', $$place_order(1, 'k', t.lines('A3'))$$);
SELECT t.says('LL001', $$place_order(1, 'k', t.lines('B2'))$$);
SELECT is(array_agg(qty), '{2}', 'the lines are those of the first call') FROM order_lines;
SELECT t.says('2', $$place_order(2, 'k', t.lines('B1'))$$, 'the key of another user is another order');
ROLLBACK;

-- The price changes between the insert of the order and that of its lines.
-- Guarantee: The total of an order is that of its lines, whatever price changes while it is placed.
BEGIN; SELECT t.test('order_reads_each_price_once');
:shop
CREATE FUNCTION t.reprice() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN UPDATE ledgerlock.stock SET unit_price_minor = 7; RETURN NEW; END $$;
CREATE TRIGGER reprice BEFORE INSERT ON orders FOR EACH ROW EXECUTE FUNCTION t.reprice();
SELECT t.says('1', $$place_order(1, 'k', t.lines('A2'))$$);
SELECT is(max(unit_price_minor), 7::bigint, 'the price did change') FROM stock;
SELECT is(total_minor, 500::bigint, 'the total is at the price before') FROM orders;
SELECT is(qty * unit_price_minor, 500::numeric::bigint, 'and so is the line') FROM order_lines;
ROLLBACK;

BEGIN; SELECT t.test('order_with_sku_twice_has_its_quantities_summed');
:shop
SELECT t.says('1', $$place_order(1, 'k', t.lines('A2 B1 A3'))$$);
SELECT is(string_agg(sku_id || 'x' || qty, ' ' ORDER BY sku_id), '65x5 70x1', 'one line for each SKU') FROM order_lines;
SELECT is(total_minor, 1350::bigint, 'the total of all units') FROM orders;
ROLLBACK;

BEGIN; SELECT t.test('order_of_unknown_skus_is_rejected_naming_them');
:shop
SELECT t.says('1', $$place_order(1, 'k', t.lines('Z1 A1 Y1'))$$);
SELECT is(format('%s %s %s', state, reason, skus), 'rejected unknown_sku {Y,Z}', 'all that are unknown, sorted') FROM orders;
SELECT t.sound();
ROLLBACK;

-- Guarantee: An order of an unknown SKU is rejected now, also if it was to be served later: nothing is decided in the future.
BEGIN; SELECT t.test('order_of_an_unknown_sku_is_never_decided_in_the_future');
:shop
SELECT t.says('1', $$place_order(1, 'k', t.lines('Z1'), now() + interval '20 hours')$$);
SELECT ok(placed_at <= now() AND decided_at <= now(), 'placed and decided now') FROM orders;
ROLLBACK;

BEGIN; SELECT t.test('order_that_is_malformed_is_refused');
:shop
SELECT t.says('LL002', format('place_order(%s)', arguments)) FROM (VALUES
  ($$1, 'k', '[]'$$), ($$1, 'k', '{}'$$), ($$1, 'k', '[1]'$$), ($$1, 'k', NULL$$),
  ($$1, '', t.lines('A2')$$), ($$1, NULL, t.lines('A1')$$), ($$1, repeat('k', 256), t.lines('A1')$$),
  ($$1, 'k', t.lines('A0')$$), ($$1, 'k', '[{"sku": "A", "qty": 1.5}]'$$), ($$1, 'k', '[{"sku": "A", "qty": -1}]'$$),
  ($$1, 'k', '[{"sku": 7, "qty": 1}]'$$), ($$1, 'k', '[{"sku": "A"}]'$$),
  ($$9, 'k', t.lines('A1')$$), ($$3, 'k', t.lines('A1')$$), ($$4, 'k', t.lines('DEAR2')$$)) AS v (arguments);
SELECT t.says('LL002', $$place_order(1, 'k', (SELECT jsonb_agg(jsonb_build_object('sku', 'N' || n, 'qty', 1)) FROM generate_series(1, 1000) AS n))$$,
              'more SKUs than a batch can lock are refused');
SELECT is(count(*), 0::bigint, 'nothing was recorded') FROM orders;
ROLLBACK;

BEGIN; SELECT t.test('order_placed_moves_neither_stock_nor_money');
:shop
SELECT t.says('1', $$place_order(1, 'k', t.lines('A2'))$$);
SELECT is(on_hand, 10::bigint, 'the units are on hand') FROM stock WHERE sku = 'A';
SELECT is(balance_minor, 1000::bigint, 'the money is in the wallet') FROM users WHERE user_id = 1;
SELECT is(count(*), 0::bigint, 'nothing moved') FROM ledger WHERE kind <> 'deposit';
ROLLBACK;

BEGIN; SELECT t.test('order_status_tells_its_own_user_only');
:shop
SELECT t.says('1', $$place_order(1, 'k', t.lines('Z1'))$$);
SELECT t.says('rejected unknown_sku', $$concat_ws(' ', state, reason) FROM order_status(1, 1)$$);
SELECT t.says('0', $$count(*) FROM order_status(2, 1)$$);
ROLLBACK;

-- Guarantee: An order keeps the prices of its moment.
BEGIN; SELECT t.test('order_keeps_its_price');
:shop
SELECT t.order(1, 'A3', 'k');
SELECT t.says('1', $$set_sku_price('A', 1)$$);
SELECT is(t.serve(), '1 fulfilled, 0 rejected', 'it is served');
SELECT is(balance_minor, 250::bigint, 'at the price at which it was placed') FROM users WHERE user_id = 1;
SELECT t.sound();
ROLLBACK;

BEGIN; SELECT t.test('order_that_is_taken_back_is_never_served');
:shop
SELECT t.order(1, 'A1', 'k');
SELECT is(t.serve(), '1 fulfilled, 0 rejected', 'the first is served');
SELECT t.order(1, 'A1', 'l');
SELECT t.says('true', 'cancel_order(1, 2)');
SELECT t.says('false', 'cancel_order(1, 2)', 'once more, and nothing changes');
SELECT t.says('LL003', 'cancel_order(1, 1)', 'an order that was served stays so');
SELECT t.says('LL002', 'cancel_order(2, 2)', 'it is not his');
SELECT t.says('LL003', $$return_units(1, 2, 'A', 1, 'mood', 'a')$$, 'nothing of it was sold');
SELECT is(t.serve(), '0 fulfilled, 0 rejected', 'no worker serves it');
SELECT is(state, 'cancelled', 'it is cancelled') FROM orders WHERE order_id = 2;
SELECT is(balance_minor, 750::bigint, 'and not paid') FROM users WHERE user_id = 1;
SELECT t.sound();
ROLLBACK;

SELECT t.done(63);
