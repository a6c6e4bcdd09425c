-- Orders paid by card, and what is given back to one: units are held while the card is asked, then sold, or free again.
-- User 1 pays by card and has 5.00 in the wallet, user 2 pays from a wallet of 100.00. Ten units of A at 1.00 and five of B at 0.10.
-- Payments are numbered otherwise than orders.
\set shop 'ALTER SEQUENCE payments_payment_id_seq RESTART WITH 71; SELECT t.user(1, 500), t.user(2, 10000), pay_with(1, ''card'', ''cus_1'', ''pm_1''), t.sku(64, ''A'', 10, 100), t.sku(128, ''B'', 5, 10);'
\set orders '(SELECT string_agg(concat_ws('' '', state, reason), '', '' ORDER BY order_id) FROM orders)'
\set units '(SELECT string_agg(format(''%s%s held %s'', sku, on_hand, held), '', '' ORDER BY sku) FROM stock)'
\set attempts '(SELECT string_agg(concat_ws('' '', kind, attempt_no, state, calls), '', '' ORDER BY payment_id) FROM payments)'
\set wallet '(SELECT balance_minor FROM users WHERE user_id = 1)'
SELECT no_plan();

-- ---- hold and sale ----

-- Guarantee: The units of an order by card are held until the card is asked, and nobody else can buy them.
BEGIN; SELECT t.test('units_are_held_while_the_card_is_asked');
:shop
SELECT t.order(1, 'A7 B5', 'k1');
SELECT is(t.serve('2024-01-02Z'), '0 fulfilled, 0 rejected', 'not decided yet');
SELECT is(concat_ws('; ', :orders, :units, :attempts, :wallet), 'paying; A10 held 7, B5 held 5; payment 1 planned 0; 500', 'held, and planned');
SELECT is(concat_ws(' ', source, leg, amount_minor, currency, customer, method), '1 0 750 USD cus_1 pm_1', 'with all that the request says') FROM payments;
SELECT t.sound('2024-01-02Z');
SELECT t.order(2, 'A4', 'k2'), t.order(2, 'A3', 'k3');
SELECT is(t.serve('2024-01-02Z'), '1 fulfilled, 1 rejected', 'three are left for others');
SELECT is(concat_ws('; ', :orders, :units), 'paying, rejected out_of_stock, fulfilled; A7 held 7, B5 held 5', 'not four');
SELECT t.says('LL003', 'adjust_stock(''A'', -1, ''broken'', ''x'')', 'nor can a held unit be written off');
SELECT t.sound('2024-01-02Z');
ROLLBACK;

-- Guarantee: A captured payment sells what was held, and no wallet moves.
BEGIN; SELECT t.test('captured_payment_sells_what_was_held');
:shop
SELECT t.order(1, 'A7 B5', 'k1'), t.serve('2024-01-02Z');
SELECT is(t.answer(t.send(), 'captured', '2024-01-02 10:00Z'), '1 settled, 1 captured, 0 declined', 'captured');
SELECT is(concat_ws('; ', :orders, :units, :attempts, :wallet), 'fulfilled; A3 held 0, B0 held 0; payment 1 captured 1; 500', 'sold');
SELECT is(string_agg(concat_ws(' ', kind, debit, credit, amount_minor), ', '), 'card gateway order_revenue 750', 'by the gateway') FROM ledger WHERE user_id = 1 AND kind <> 'deposit';
UPDATE feed_base SET base = base + 1;
SELECT is(string_agg(decision || ' ' || order_id, ', '), 'order.fulfilled 1', 'the feed has it') FROM decisions_since();
SELECT is(string_agg(what, ', '), 'placed, line, line, card, fulfilled, sold, sold, paid', 'so has its life') FROM (SELECT what FROM life_of_order(1)) AS life
 WHERE EXISTS (SELECT FROM life_of_order(1) WHERE what = 'paid' AND detail = 'from the card of user 1');
SELECT t.sound('2024-01-02 10:00Z');
ROLLBACK;

-- Guarantee: A declined card rejects its order, and the units are free again.
BEGIN; SELECT t.test('declined_card_frees_the_units');
:shop
SELECT t.order(1, 'A7', 'k1'), t.serve('2024-01-02Z');
SELECT is(t.answer(t.send(), 'declined', '2024-01-02 10:00Z', 'stolen_card'), '1 settled, 0 captured, 1 declined', 'declined');
SELECT is(concat_ws('; ', :orders, :units), 'rejected card_declined; A10 held 0, B5 held 0', 'free');
UPDATE feed_base SET base = base + 1;
SELECT is(array_agg(decision || ' ' || reason), '{order.rejected card_declined}', 'the feed says why') FROM decisions_since();
SELECT t.sound('2024-01-02 10:00Z');
ROLLBACK;

-- Guarantee: A hold in doubt does not expire, and a later answer decides.
BEGIN; SELECT t.test('hold_in_doubt_does_not_expire');
:shop
SELECT t.order(1, 'A7', 'k1'), t.serve('2024-01-02Z');
SELECT t.answer(t.send(), 'unknown', '2024-01-02Z', 'HTTP 500');
SELECT t.serve('2025-01-02Z');
SELECT is(concat_ws('; ', :orders, :units, :attempts), 'paying; A10 held 7, B5 held 0; payment 1 unknown 1', 'a year later');
SELECT alike(detail, '%attempt 1 of order 1 is unknown since%', 'explain says so') FROM waits_of_order(1) WHERE "for" = 'a card';
SELECT t.says('LL003', 'cancel_order(1, 1)', 'nor can it be taken back');
SELECT t.says('LL003', 'close_account(1)', 'nor the account be closed');
SELECT t.sound('2025-01-02Z');
SELECT t.answer(t.send(), 'captured', '2025-01-02Z');
SELECT is(concat_ws('; ', :orders, :units), 'fulfilled; A3 held 0, B5 held 0', 'until an answer decides');
SELECT t.sound('2025-01-02Z');
ROLLBACK;

-- Guarantee: An order is pending again where the gateway has nothing of its payment, and the next attempt has another number.
BEGIN; SELECT t.test('order_of_a_void_attempt_is_pending_again');
:shop
SELECT t.order(1, 'A7', 'k1'), t.serve('2024-01-02Z');
SELECT t.answer(t.send(), 'void', '2024-01-02Z');
SELECT is(concat_ws('; ', :orders, :units, :attempts), 'pending; A10 held 0, B5 held 0; payment 1 void 1', 'free again');
SELECT t.sound('2024-01-02Z');
SELECT t.serve('2024-01-02Z');
SELECT is(concat_ws('; ', :orders, :units, :attempts), 'paying; A10 held 7, B5 held 0; payment 1 void 1, payment 2 planned 0', 'and asked for again');
SELECT pay_with(1, 'wallet'), t.answer(t.send(), 'void', '2024-01-02Z'), t.serve('2024-01-02Z');
SELECT is(:orders, 'rejected insufficient_funds', 'or the wallet pays, if that is to pay by then');
SELECT t.sound('2024-01-02Z');
ROLLBACK;

-- Guarantee: An order by card that another one empties is refused before its card is asked.
BEGIN; SELECT t.test('order_that_is_emptied_is_refused_before_it_is_charged');
:shop
SELECT t.order(2, 'A4', 'k1'), t.order(1, 'A7', 'k2'), t.serve('2024-01-02Z');
SELECT is(concat_ws('; ', :orders, coalesce(:attempts, 'nothing asked')), 'fulfilled, rejected out_of_stock; nothing asked', 'no attempt');
ROLLBACK;

-- Guarantee: Orders and periods, from wallets and by card, are settled each once, in two transactions.
BEGIN; SELECT t.test('orders_and_periods_are_settled_apart');
:shop
SELECT t.subscription(1, 1, 100, '2024-01-01Z'), t.order(1, 'A1', 'k1'), t.order(1, 'B1', 'k2'), t.bill('2024-01-02Z'), t.serve('2024-01-02Z');
SELECT t.send() AS token \gset
SELECT throws_ok(format('SELECT t.answer(%s, ''captured'', ''2024-01-02Z'')', :token), '23505');
UPDATE feed_base SET base = base + 1;
SELECT is(captured, 1::bigint, 'periods') FROM settle_payments('w', '2024-01-02Z', ARRAY(SELECT payment_id FROM payments WHERE kind = 'charge'), ARRAY[:token]::bigint[], '{captured}', '{pi_1}', '{NULL}', '{0}');
SELECT is(t.answer(:token, 'captured', '2024-01-02Z'), '3 settled, 2 captured, 0 declined', 'orders');
SELECT t.sound('2024-01-02Z');
ROLLBACK;

-- Guarantee: An order that costs nothing asks no card.
BEGIN; SELECT t.test('free_order_needs_no_card');
:shop
SELECT t.sku(256, 'F', 2, 0), t.order(1, 'F2', 'k1');
SELECT is(t.serve('2024-01-02Z'), '1 fulfilled, 0 rejected', 'what costs nothing asks nobody');
SELECT t.sound('2024-01-02Z');
ROLLBACK;

-- Guarantee: An order whose card is asked can be taken back only if nobody was asked yet.
BEGIN; SELECT t.test('order_is_taken_back_before_its_card_is_asked');
:shop
SELECT t.order(1, 'A7', 'k1'), t.serve('2024-01-02Z');
SELECT t.says('true', 'cancel_order(1, 1)', 'planned: it is');
SELECT is(concat_ws('; ', :orders, :units, :attempts), 'cancelled; A10 held 0, B5 held 0; payment 1 void 0', 'free, and not asked for');
SELECT is(sent, 0::bigint, 'also later') FROM send_payments(999999, 'w', NULL, '{71}', 1000, 'form');
SELECT t.sound('2024-01-02Z');
ROLLBACK;

-- A worker with an earlier --now writes down what one with a later --now has planned.
BEGIN; SELECT t.test('answer_is_not_dated_before_what_it_is_for');
:shop
SELECT t.order(1, 'A7', 'k1', now()), t.serve();
SELECT is(t.answer(t.send(), 'captured', '2024-01-02Z'), '1 settled, 1 captured, 0 declined', 'captured');
SELECT t.sound();
ROLLBACK;

-- ---- what goes back ----
-- An order of 7.50 that was paid by card.
\set paid 'SELECT t.order(1, ''A7 B5'', ''k1''), t.serve(''2024-01-02Z''), t.answer(t.send(), ''captured'', ''2024-01-02Z'');'

-- Guarantee: Money that a card has paid goes back to the card, by an attempt of its own, and no wallet moves.
BEGIN; SELECT t.test('refund_goes_back_to_the_card');
:shop
:paid
SELECT t.says('250', 'refund(1, ''payment'', 1, 0, 250, ''late'', ''r1'')');
SELECT t.says('250', 'refund(1, ''payment'', 1, 0, 250, ''late'', ''r1'')');
SELECT t.says('LL003', 'refund(1, ''payment'', 1, 0, 501, ''late'', ''r2'')', 'never more than was paid');
SELECT is(concat_ws('; ', :attempts, :wallet), 'payment 1 captured 1, refund 1 planned 0; 500', 'planned once');
SELECT t.sound();
SELECT t.answer(t.send(), 'unknown'), t.answer(t.send(), 'captured');
SELECT is(:attempts, 'payment 1 captured 1, refund 1 captured 2', 'and made once');
SELECT is(concat_ws(' ', debit, credit, amount_minor), 'order_revenue gateway 250', 'from the revenue of orders') FROM ledger WHERE kind = 'refund';
SELECT is(count(*), 2::bigint, 'its life has both attempts') FROM life_of_order(1) WHERE what = 'card';
SELECT is(count(*), 1::bigint, 'and the refund') FROM life_of_order(1) WHERE what = 'refund';
SELECT t.sound();
SELECT is(concat_ws(' ', r ->> 'by_card', r ->> 'order_revenue', r ->> 'refunds', r ->> 'difference'), '500 750 250 0', 'the report has what stayed') FROM (SELECT report() -> -1) AS report (r);
SELECT t.says('500', 'refund(1, ''payment'', 1, 0, NULL, ''the rest'', ''r3'')');
SELECT t.says('LL003', 'refund(1, ''payment'', 1, 0, NULL, ''more'', ''r4'')');
SELECT t.sound();
ROLLBACK;

-- Guarantee: A period that was paid by card is refunded or voided to the card.
BEGIN; SELECT t.test('period_goes_back_to_the_card');
SELECT t.user(1), pay_with(1, 'card', 'cus_1', 'pm_1'), t.subscription(1, 1, 100, '2024-01-01Z'), t.bill('2024-01-01Z');
SELECT t.answer(t.send(), 'captured', '2024-01-01Z');
SELECT t.says('30', 'refund(1, ''charge'', 1, 0, 30, ''late'', ''r1'')');
SELECT t.says('LL003', 'void_entry(1, ''charge'', 1, 0, ''never'', ''v1'')');
SELECT t.says('70', 'refund(1, ''charge'', 1, 0, NULL, ''all'', ''r2'')');
SELECT is(string_agg(concat_ws(' ', debit, credit, amount_minor), ', ' ORDER BY source), 'subscription_revenue gateway 30, subscription_revenue gateway 70', 'from the revenue of subscriptions') FROM ledger WHERE kind = 'refund';
SELECT t.answer(t.send(), 'captured');
SELECT is(:attempts, 'charge 1 captured 1, refund 1 captured 1, refund 1 captured 1', 'two refunds');
SELECT is(count(*), 2::bigint, 'its life has both') FROM life_of_subscription(1) WHERE what = 'refund';
SELECT t.sound();
ROLLBACK;

-- Guarantee: Units that come back are refunded to the card that paid for them.
BEGIN; SELECT t.test('returned_units_are_refunded_to_the_card');
:shop
:paid
SELECT t.says('200', 'return_units(1, 1, ''A'', 2, ''broken'', ''b1'')');
SELECT is(concat_ws('; ', :units, :attempts, :wallet), 'A5 held 0, B0 held 0; payment 1 captured 1, refund 1 planned 0; 500', 'units here, money there');
SELECT t.sound();
ROLLBACK;

-- Guarantee: A refund of which the gateway has nothing is attempted again under another number; one that it refuses is parked.
BEGIN; SELECT t.test('refund_is_attempted_until_it_is_made');
:shop
:paid
SELECT refund(1, 'payment', 1, 0, 250, 'late', 'r1'), t.answer(t.send(), 'void');
SELECT is(:attempts, 'payment 1 captured 1, refund 1 void 1, refund 2 planned 0', 'again');
SELECT t.sound();
SELECT t.answer(t.send(), 'refused', now(), 'HTTP 400 charge_disputed');
SELECT is(t.broken(), '{nothing_parked}', 'the audit tells');
SELECT is(array_agg(id), '{73}', 'given back by a person') FROM release_rows('payments', '{73}') AS id;
SELECT is(:attempts, 'payment 1 captured 1, refund 1 void 1, refund 2 unknown 3', 'to be looked up');
ROLLBACK;

SELECT t.done(72);
