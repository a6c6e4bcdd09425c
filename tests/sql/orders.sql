-- The rules of orders, straight on claim_users, claim_stock and apply_orders: all or nothing, decided as if served one after the other.
\set shop 'SELECT t.user(1, 10000), t.user(2, 1000), t.sku(64, ''A'', 5, 100), t.sku(128, ''B'', 5, 10), t.sku(192, ''C'', 0, 1);'
\set outcomes '(SELECT string_agg(concat_ws('' '', state, reason, skus::text), '', '' ORDER BY order_id) FROM orders)'
-- Stock, wallets, and all that was sold and paid.
\set left '(SELECT concat_ws('' '', (SELECT string_agg(sku || on_hand, '' '' ORDER BY sku) FROM stock), (SELECT string_agg(balance_minor::text, '' '' ORDER BY user_id) FROM users), (SELECT string_agg(sku || qty, '' '' ORDER BY source, sku) FROM stock_ledger JOIN stock USING (sku_id) WHERE kind = ''sale''), ''paid'', (SELECT count(*) FROM ledger WHERE kind = ''payment'')))'
SELECT no_plan();

-- Guarantee: An order moves every line and is paid, or moves nothing.
BEGIN; SELECT t.test('order_that_fits_moves_every_line_and_is_paid');
:shop
SELECT t.order(1, 'A2 B5', 'k');
SELECT is(t.serve('2024-01-02Z'), '1 fulfilled, 0 rejected', 'served');
SELECT is(:left, 'A3 B0 C0 9750 1000 A-2 B-5 paid 1', 'units and money moved');
SELECT t.sound('2024-01-02Z');
ROLLBACK;

-- Guarantee: An order with one line short moves nothing.
BEGIN; SELECT t.test('order_with_one_line_short_moves_nothing');
:shop
SELECT t.order(1, 'A2 B6', 'k');
SELECT is(t.serve('2024-01-02Z'), '0 fulfilled, 1 rejected', 'served');
SELECT is(:outcomes, 'rejected out_of_stock {B}', 'it names the line');
SELECT is(:left, 'A5 B5 C0 10000 1000 paid 0', 'nothing moved');
SELECT t.sound('2024-01-02Z');
ROLLBACK;

BEGIN; SELECT t.test('order_short_of_several_names_all_of_them_sorted');
:shop
SELECT t.order(1, 'C1 B1 A6', 'k');
SELECT is(t.serve('2024-01-02Z'), '0 fulfilled, 1 rejected', 'served');
SELECT is(:outcomes, 'rejected out_of_stock {A,C}', 'it names both');
SELECT is(:left, 'A5 B5 C0 10000 1000 paid 0', 'nothing moved');
ROLLBACK;

-- Guarantee: An order above the wallet is rejected, and one that takes all of it is not.
BEGIN; SELECT t.test('order_above_the_wallet_is_rejected_and_one_that_empties_it_is_not');
:shop
UPDATE stock SET unit_price_minor = 200 WHERE sku = 'B';
SELECT t.order(2, 'B5 A1', 'k'), t.order(2, 'B5', 'l');
SELECT is(t.serve('2024-01-02Z'), '1 fulfilled, 1 rejected', 'served');
SELECT is(:outcomes, 'rejected insufficient_funds, fulfilled', 'the second fits');
SELECT is(:left, 'A5 B0 C0 10000 0 B-5 paid 1', 'the wallet is empty');
SELECT t.sound('2024-01-02Z');
ROLLBACK;

BEGIN; SELECT t.test('order_that_is_free_is_fulfilled_without_a_payment');
:shop
SELECT t.user(3), t.sku(256, 'F', 2, 0), t.order(3, 'F2', 'k');
SELECT is(t.serve('2024-01-02Z'), '1 fulfilled, 0 rejected', 'served');
SELECT is(:left, 'A5 B5 C0 F0 10000 1000 0 F-2 paid 0', 'units moved, and no money');
SELECT t.sound('2024-01-02Z');
ROLLBACK;

-- Guarantee: Orders of one user are served until the wallet ends, those of one SKU until the stock ends; a smaller one behind is still served.
BEGIN; SELECT t.test('order_after_order_of_one_user_ends_where_the_wallet_ends');
:shop
UPDATE stock SET unit_price_minor = 400 WHERE sku = 'A';
SELECT t.order(2, lines, 'k' || n) FROM unnest('{A1,A1,A1,B1,A1}'::text[]) WITH ORDINALITY AS placed (lines, n);
SELECT is(t.serve('2024-01-02Z'), '3 fulfilled, 2 rejected', 'served');
SELECT is(:outcomes, 'fulfilled, fulfilled, rejected insufficient_funds, fulfilled, rejected insufficient_funds', 'in their order');
SELECT is(:left, 'A3 B4 C0 10000 190 A-1 A-1 B-1 paid 3', 'no more than the wallet had');
SELECT t.sound('2024-01-02Z');
ROLLBACK;

BEGIN; SELECT t.test('order_after_order_of_one_sku_ends_where_the_stock_ends');
:shop
SELECT t.order(who, lines, 'k' || n) FROM unnest('{1,2,1,2,1}'::bigint[], '{A3,A3,A1,A2,A1}'::text[]) WITH ORDINALITY AS placed (who, lines, n);
SELECT is(t.serve('2024-01-02Z'), '3 fulfilled, 2 rejected', 'served');
SELECT is(:outcomes, 'fulfilled, rejected out_of_stock {A}, fulfilled, rejected out_of_stock {A}, fulfilled', 'in their order');
SELECT is(:left, 'A0 B5 C0 9500 1000 A-3 A-1 A-1 paid 3', 'no more than was on hand');
SELECT t.sound('2024-01-02Z');
ROLLBACK;

-- Guarantee: Orders are served in the order of their time, whatever their numbers.
BEGIN; SELECT t.test('orders_are_served_in_the_order_of_their_time');
:shop
SELECT t.order(1, 'A3', 'late', '2024-01-01 02:00Z'), t.order(2, 'A3', 'early', '2024-01-01 01:00Z');
SELECT is(t.serve('2024-01-02Z'), '1 fulfilled, 1 rejected', 'served');
SELECT is(:outcomes, 'rejected out_of_stock {A}, fulfilled', 'the second was placed first');
ROLLBACK;

BEGIN; SELECT t.test('order_with_one_sku_at_two_prices_is_summed');
:shop
SELECT t.order(1, 'A3', 'k');
INSERT INTO order_lines SELECT order_id, 64, 90, 3 FROM orders;
SET LOCAL ledgerlock.repair = on;
UPDATE orders SET total_minor = 570;
SELECT is(t.serve('2024-01-02Z'), '0 fulfilled, 1 rejected', 'six are more than there are');
SELECT is(:outcomes, 'rejected out_of_stock {A}', 'summed');
SELECT receive_stock('A', '1', 1);
UPDATE orders SET state = 'pending', reason = NULL, skus = NULL, decided_at = NULL;
SELECT is(t.serve('2024-01-02Z'), '1 fulfilled, 0 rejected', 'one more, and they fit');
SELECT is(:left, 'A0 B5 C0 9430 1000 A-3 A-3 paid 1', 'each line is a sale, at its price');
ROLLBACK;

-- Guarantee: An order is served from its time on, and not before.
BEGIN; SELECT t.test('order_placed_later_than_now_waits');
:shop
SELECT t.order(1, 'A1', 'k', '2024-01-01Z');
SELECT is(t.serve('2023-12-31 23:59:59.999999Z'), '0 fulfilled, 0 rejected', 'not before');
SELECT is(t.serve('2024-01-01Z'), '1 fulfilled, 0 rejected', 'at its time');
ROLLBACK;

-- Guarantee: An order whose units do not fit into 64 bits is refused by itself, and moves nothing.
BEGIN; SELECT t.test('order_whose_sum_overflows_is_refused');
:shop
SELECT t.order(1, 'B1', 'k'), t.order(1, 'B1', 'l');
SET LOCAL ledgerlock.repair = on;
UPDATE order_lines SET qty = 9223372036854775807 WHERE order_id = 1;
INSERT INTO order_lines VALUES (1, 128, 11, 9223372036854775807);
SELECT t.would('22003', $$t.serve('2024-01-02Z')$$, 'with it a batch fails', 'postgres');
SELECT is(park_rows('orders', '{1}', 9, 'w', 'why'), 1::bigint, 'without it');
SELECT is(t.serve('2024-01-02Z'), '1 fulfilled, 0 rejected', 'the rest flows');
SELECT is(:outcomes, 'parked, fulfilled', 'the first waits for a person');
ROLLBACK;

SELECT t.done(37);
