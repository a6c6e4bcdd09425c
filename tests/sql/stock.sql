-- create_sku, set_sku_price, receive_stock, adjust_stock and return_units: units come and go once per key, and never below nothing.
SELECT no_plan();

-- ---- SKUs ----

-- Guarantee: A SKU made twice is one SKU, also after its price changed; with another currency or first price it is refused.
BEGIN; SELECT t.test('sku_made_twice_is_one');
SELECT t.says('1', $$create_sku('NEW', 500, 'USD')$$);
SELECT t.says('1', $$create_sku('NEW', 500, 'USD')$$);
SELECT t.says('700', $$set_sku_price('NEW', 700)$$);
SELECT t.says('1', $$create_sku('NEW', 500, 'USD')$$, 'its first price counts');
SELECT t.says('LL001', $$create_sku('NEW', 700, 'USD')$$);
SELECT t.says('LL001', $$create_sku('NEW', 500, 'EUR')$$);
SELECT is(string_agg(concat_ws(' ', sku, initial_qty, on_hand, unit_price_minor, currency), ', '), 'NEW 0 0 700 USD', 'one SKU') FROM stock;
SELECT t.says('5', $$receive_stock('NEW', '1', 5)$$);
SELECT t.sound();
ROLLBACK;

-- Guarantee: A change of a price that is made again after somebody else's changes nothing, if it names the price that it was made from.
BEGIN; SELECT t.test('late_change_of_a_price_undoes_nothing');
SELECT t.sku(1, 'A', 10, 250);
SELECT t.says('300', $$set_sku_price('A', 300, 250)$$);
SELECT t.says('300', $$set_sku_price('A', 300, 250)$$);
SELECT t.says('400', $$set_sku_price('A', 400, 300)$$);
SELECT t.says('LL003', $$set_sku_price('A', 300, 250)$$);
SELECT is(string_agg(old_minor || ' ' || amount_minor, ', ' ORDER BY event_id), '250 300, 300 400', 'an event has each new price') FROM events;
ROLLBACK;

BEGIN; SELECT t.test('sku_or_price_that_is_none_is_refused');
SELECT t.sku(65, 'A', 10, 250);
SELECT t.would(answer, call) FROM (VALUES
  ('1', $$create_sku('FREE', 0, 'USD')$$), ('LL002', $$create_sku(NULL, 1, 'USD')$$), ('LL002', $$create_sku('', 1, 'USD')$$),
  ('LL002', $$create_sku(repeat('s', 256), 1, 'USD')$$), ('LL002', $$create_sku('N', NULL, 'USD')$$), ('LL002', $$create_sku('N', -1, 'USD')$$),
  ('LL002', $$create_sku('N', 1, NULL)$$), ('LL002', $$create_sku('N', 1, 'usd')$$),
  ('250', $$set_sku_price('A', 250, 7)$$), ('LL002', $$set_sku_price(NULL, 1)$$), ('LL002', $$set_sku_price('', 1)$$),
  ('LL002', $$set_sku_price('Z', 1)$$), ('LL002', $$set_sku_price('A', NULL)$$), ('LL002', $$set_sku_price('A', -1)$$),
  ('LL003', $$set_sku_price('A', 1, 2)$$), ('1', $$set_sku_price('A', 1)$$)) AS v (answer, call);
ROLLBACK;

-- ---- deliveries and adjustments ----

-- Guarantee: A delivery made twice under one number arrives once.
BEGIN; SELECT t.test('delivery_with_same_number_arrives_once');
SELECT t.sku(1, 'A', 10, 250), t.sku(2, 'B', 5, 100), t.sku(3, 'MANY', 9223372036854775807, 1);
SELECT t.says('15', $$receive_stock('A', '1', 5)$$);
SELECT t.says('15', $$receive_stock('A', '1', 5)$$);
SELECT t.says('10', $$receive_stock('B', '1', 5)$$, 'the number of another SKU is another delivery');
SELECT t.says('LL001', $$receive_stock('A', '1', 6)$$);
SELECT t.says('LL002', format('receive_stock(%s)', arguments)) FROM (VALUES
  ($$'A', '2', 0$$), ($$'A', '2', -1$$), ($$'A', '2', NULL$$), ($$'Z', '1', 5$$), ($$'A', NULL, 5$$), ($$'A', '', 5$$), ($$'MANY', '1', 1$$)) AS v (arguments);
SELECT is(string_agg(sku, ' ' ORDER BY sku), 'A B', 'each arrived once') FROM stock WHERE on_hand - initial_qty = 5;
SELECT t.sound();
ROLLBACK;

-- Guarantee: An adjustment counts once per key, and takes no more units than are on hand.
BEGIN; SELECT t.test('adjustment_counts_units_in_and_out');
SELECT t.sku(1, 'A', 7, 70), t.sku(2, 'C', 7, 70);
SELECT t.says('5', $$adjust_stock('A', -2, 'broken', 'a')$$);
SELECT t.says('5', $$adjust_stock('A', -2, 'broken', 'a')$$);
SELECT t.says('LL001', $$adjust_stock('A', 2, 'broken', 'a')$$);
SELECT t.says('LL001', $$adjust_stock('A', -2, 'broken', 'a', p_cell => 1)$$);
SELECT t.says('LL002', $$adjust_stock('A', -1, 'to cell 8192', 'b', p_cell => 8192)$$);
SELECT t.says('LL003', $$adjust_stock('A', -6, 'lost', 'b')$$);
SELECT t.says('LL002', format('adjust_stock(%s)', arguments)) FROM (VALUES
  ($$'A', 0, 'lost', 'b'$$), ($$'B', 1, 'found', 'b'$$), ($$'A', 9223372036854775807, 'found', 'b'$$), ($$'A', -1, ' ', 'b'$$), ($$'A', -1, 'lost', NULL$$)) AS v (arguments);
SELECT t.says('9', $$adjust_stock('A', 4, 'found', 'b')$$);
SELECT t.says('5', $$adjust_stock('C', -2, 'broken', 'a')$$, 'the key of another SKU is another adjustment');
SELECT t.sound();
ROLLBACK;

-- ---- returns: user 1 has paid 210 for three units of A, of ten ----
\set sold 'SELECT t.user(1, 1000), t.user(2, 10), t.sku(1, ''A'', 10, 70), t.order(1, ''A3'', ''k'', now()); SELECT t.serve();'

-- Guarantee: Units that come back are on hand again and refunded at their price, never more than were sold and never more than is left of
-- the payment.
BEGIN; SELECT t.test('units_come_back_and_are_refunded');
:sold
SELECT t.says('70', $$return_units(1, 1, 'A', 1, 'broken', 'a')$$);
SELECT t.says('70', $$return_units(1, 1, 'A', 1, 'broken', 'a')$$);
SELECT is(on_hand, 8::bigint, 'the unit came back once') FROM stock;
SELECT t.says('LL003', $$return_units(1, 1, 'A', 3, 'broken', 'b')$$, 'more than were sold');
SELECT t.says('LL001', $$return_units(1, 1, 'A', 2, 'broken', 'a')$$);
SELECT t.says('LL002', $$return_units(2, 1, 'A', 1, 'broken', 'b')$$);
SELECT t.says('LL002', $$return_units(1, 1, 'Z', 1, 'broken', 'b')$$);
SELECT t.says('LL002', $$return_units(1, 1, 'A', 0, 'broken', 'b')$$);
SELECT t.says('100', $$refund(1, 'payment', 1, 0, 100, 'late', 'a')$$);
SELECT t.says('40', $$return_units(1, 1, 'A', 2, 'broken', 'b')$$, 'of 140 no more than is left of the payment');
SELECT is(on_hand, 10::bigint, 'all are on hand') FROM stock;
SELECT is(balance_minor, 1000::bigint, 'all is given back') FROM users WHERE user_id = 1;
SELECT t.says('LL003', $$refund(1, 'payment', 1, 0, 1, 'more', 'b')$$);
SELECT t.sound();
ROLLBACK;

-- Guarantee: Units that cost nothing, or whose money is back already, come back for nothing.
BEGIN; SELECT t.test('units_come_back_for_nothing');
:sold
SELECT t.sku(2, 'FREE', 5, 0), t.order(1, 'FREE2', 'f', now());
SELECT is(t.serve(), '1 fulfilled, 0 rejected', 'the free ones are sold');
SELECT t.says('0', $$return_units(1, 2, 'FREE', 1, 'broken', 'a')$$);
SELECT t.says('210', $$refund(1, 'payment', 1, 0, NULL, 'late', 'b')$$);
SELECT t.says('0', $$return_units(1, 1, 'A', 3, 'broken', 'b')$$);
SELECT is(string_agg(on_hand::text, ' ' ORDER BY sku), '10 4', 'all came back') FROM stock;
SELECT is(balance_minor, 1000::bigint, 'refunded once') FROM users WHERE user_id = 1;
SELECT t.sound();
ROLLBACK;

BEGIN; SELECT t.test('dearer_units_come_back_first');
:sold
INSERT INTO order_lines (order_id, sku_id, unit_price_minor, qty) VALUES (1, 1, 90, 2);
SELECT t.says(cost, format('cost_of_units(1, 1, %s)', units)) FROM (VALUES
  ('90', '0, 1'), ('160', '1, 2'), ('390', '0, 5'), ('70', '4, 9')) AS v (cost, units);
ROLLBACK;

SELECT t.done(82);
