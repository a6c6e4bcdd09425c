-- deposit, withdraw, refund and void_entry: money moves once per key, never below nothing and never back beyond what was paid.
-- User 1 has paid 100 for a period of ten days that is running, and 210 for three units of A; user 2 cannot pay 50.
\set paid 'SELECT t.user(1, 1000), t.user(2, 10), t.sku(1, ''A'', 10, 70), t.subscription(1, 1, 100, now() - interval ''49 hours'', ''day'', 10), t.subscription(2, 2, 50, now() - interval ''49 hours'', ''day'', 10), t.order(1, ''A3'', ''k'', now()); SELECT t.bill(), t.serve();'
SELECT no_plan();

-- ---- deposits ----

-- Guarantee: A deposit made twice under one key counts once; with another amount it is refused.
BEGIN; SELECT t.test('deposit_with_same_key_counts_once');
SELECT t.user(1), t.user(2);
SELECT t.says('100', $$deposit(1, 'USD', 100, 'a')$$);
SELECT t.says('100', $$deposit(1, 'USD', 100, 'a')$$);
SELECT t.says('150', $$deposit(1, 'USD', 50, 'b')$$);
SELECT t.says('30', $$deposit(2, 'USD', 30, 'a')$$, 'the key of another user is another deposit');
SELECT t.says('LL001', $$deposit(1, 'USD', 101, 'a')$$);
SELECT is(count(*), 3::bigint, 'three of them moved money') FROM ledger;
SELECT t.sound();
ROLLBACK;

-- Guarantee: No key of a client's deposit is that of the opening deposit of an import.
BEGIN; SELECT t.test('deposit_is_never_taken_for_the_opening_deposit');
SELECT t.user(1);
INSERT INTO wallet_entries (user_id, kind, idempotency_key, amount_minor, at) VALUES (1, 'deposit', '', 100, now());
UPDATE users SET balance_minor = 100;
SELECT t.says('200', $$deposit(1, 'USD', 100, '0')$$);
SELECT t.says('LL002', $$deposit(1, 'USD', 100, '')$$, 'that key is no client''s');
SELECT is(sum(amount_minor), 200::numeric, 'both moved money') FROM ledger WHERE kind = 'deposit';
SELECT t.sound();
ROLLBACK;

-- Guarantee: A deposit in another currency than the wallet's is refused.
BEGIN; SELECT t.test('deposit_is_refused');
SELECT t.user(1);
SELECT t.says('LL002', format('deposit(%s)', arguments)) FROM (VALUES
  ($$1, 'EUR', 5, 'k'$$), ($$1, NULL, 5, 'k'$$), ($$1, 'USD', 0, 'k'$$), ($$1, 'USD', -5, 'k'$$), ($$1, 'USD', NULL, 'k'$$), ($$9, 'USD', 5, 'k'$$),
  ($$1, 'USD', 5, NULL$$), ($$1, 'USD', 5, ''$$), ($$1, 'USD', 5, repeat('k', 256)$$)) AS v (arguments);
SELECT is(balance_minor, 0::bigint, 'nothing came into the wallet') FROM users;
SELECT t.says('9223372036854775807', $$deposit(1, 'USD', 9223372036854775807, 'k')$$, 'the most that a wallet can hold');
SELECT t.says('LL002', $$deposit(1, 'USD', 1, 'l')$$, 'beyond it nothing fits');
ROLLBACK;

-- ---- withdrawals ----

-- Guarantee: A withdrawal is made once per key, and never takes more than the wallet has.
BEGIN; SELECT t.test('withdrawal_is_never_more_than_the_wallet');
:paid
SELECT t.says('90', $$withdraw(1, 'USD', 600, 'asked for', 'a')$$);
SELECT t.says('90', $$withdraw(1, 'USD', 600, 'asked for', 'a')$$);
SELECT t.says('LL001', $$withdraw(1, 'USD', 601, 'asked for', 'a')$$);
SELECT t.says('LL003', $$withdraw(1, 'USD', 91, 'asked for', 'b')$$);
SELECT t.says('LL002', $$withdraw(1, 'EUR', 1, 'asked for', 'b')$$);
SELECT t.says('LL002', $$withdraw(1, 'USD', -1, 'asked for', 'b')$$);
SELECT t.says('LL002', $$withdraw(9, 'USD', 1, 'asked for', 'b')$$);
SELECT t.says('0', $$withdraw(1, 'USD', 90, 'all', 'b')$$);
SELECT t.sound();
ROLLBACK;

-- ---- refunds ----

-- Guarantee: A refund gives back part or all of what was paid, once per key, and never more than was paid.
BEGIN; SELECT t.test('refund_gives_back_in_parts_and_never_more_than_was_paid');
:paid
SELECT is(balance_minor, 690::bigint, 'period and order are paid') FROM users WHERE user_id = 1;
SELECT t.says('30', $$refund(1, 'charge', 1, 0, 30, 'late', 'a')$$);
SELECT t.says('30', $$refund(1, 'charge', 1, 0, 30, 'late', 'a')$$);
SELECT is(balance_minor, 720::bigint, 'given back once') FROM users WHERE user_id = 1;
SELECT t.says('LL003', $$refund(1, 'charge', 1, 0, 71, 'late', 'b')$$, 'more than is left of the charge');
SELECT t.says('70', $$refund(1, 'charge', 1, 0, NULL, 'all', 'b')$$, 'null is all that is left');
SELECT t.says('LL003', $$refund(1, 'charge', 1, 0, 1, 'more', 'c')$$);
SELECT t.says('210', $$refund(1, 'payment', 1, 0, 210, 'broken', 'c')$$);
SELECT t.says('LL003', $$refund(1, 'payment', 1, 0, 1, 'more', 'd')$$);
SELECT is(balance_minor, 1000::bigint, 'all is given back') FROM users WHERE user_id = 1;
SELECT is(string_agg(concat_ws(' ', of_kind, of_source, of_leg, of_minor, before_minor), ', ' ORDER BY entry_id),
          'charge 1 0 100 0, charge 1 0 100 30, payment 1 0 210 0', 'each names what it undoes, and what was undone before') FROM wallet_entries WHERE kind = 'refund';
SELECT is(state, 'captured', 'the charge stays captured') FROM charges WHERE subscription_id = 1;
SELECT is(t.bill(), '0 captured, 0 declined', 'and its period is not charged again');
SELECT t.sound();
ROLLBACK;

BEGIN; SELECT t.test('refund_of_something_else_is_refused');
:paid
SELECT t.says('30', $$refund(1, 'charge', 1, 0, 30, 'late', 'a')$$);
SELECT t.says(state, format('refund(%s)', arguments)) FROM (VALUES
  ('LL001', $$1, 'charge', 1, 0, 31, 'late', 'a'$$), ('LL001', $$1, 'payment', 1, 0, 30, 'late', 'a'$$),
  ('LL002', $$2, 'charge', 1, 0, 30, 'late', 'b'$$), ('LL002', $$1, 'charge', 1, 1, 30, 'late', 'b'$$),
  ('LL002', $$1, 'deposit', 1, 1, 30, 'late', 'b'$$), ('LL002', $$1, 'charge', 1, 0, 0, 'late', 'b'$$),
  ('LL002', $$1, 'charge', 1, 0, 30, ' ', 'b'$$), ('LL002', $$1, 'charge', 1, 0, 30, 'late', ''$$),
  ('LL002', $$1, 'charge', 1, 0, 30, 'late', 'b', 'infinity'$$)) AS v (state, arguments);
SELECT is(count(*), 1::bigint, 'the first alone is made') FROM wallet_entries WHERE kind = 'refund';
ROLLBACK;

-- ---- voids ----

-- Guarantee: A void gives back the whole of what was never owed, once per key, and nothing if some of it was given back before.
BEGIN; SELECT t.test('void_gives_back_the_whole_or_nothing');
:paid
SELECT t.says('100', $$void_entry(1, 'charge', 1, 0, 'never', 'a')$$);
SELECT t.says('100', $$void_entry(1, 'charge', 1, 0, 'never', 'a')$$);
SELECT is(balance_minor, 790::bigint, 'given back once') FROM users WHERE user_id = 1;
SELECT t.says('LL001', $$void_entry(1, 'payment', 1, 0, 'never', 'a')$$);
SELECT t.says('LL003', $$refund(1, 'charge', 1, 0, 1, 'more', 'a')$$, 'nothing is left to refund');
SELECT t.says('1', $$refund(1, 'payment', 1, 0, 1, 'late', 'b')$$);
SELECT t.says('LL003', $$void_entry(1, 'payment', 1, 0, 'never', 'b')$$, 'some was refunded');
SELECT is(t.bill(), '0 captured, 0 declined', 'the period is not charged again');
SELECT t.sound();
ROLLBACK;

-- Of ten days the seven that are left count.
-- Guarantee: Changes of terms count in what is paid for their period, and no refund gives back more than that.
BEGIN; SELECT t.test('prorations_count_as_paid_for_their_period');
:paid
SELECT t.says('-35', $$change_now(1, 1, 'small', 1, 50, 'down')$$);
SELECT t.says('LL003', $$void_entry(1, 'charge', 1, 0, 'never', 'a')$$);
SELECT t.says('LL003', $$refund(1, 'charge', 1, 0, 66, 'all', 'a')$$);
SELECT t.says('65', $$refund(1, 'charge', 1, 0, NULL, 'all', 'a')$$);
SELECT t.says('0', $$change_now(1, 1, 'less', 1, 10, 'less')$$, 'nothing is left to give back');
SELECT t.says('98', $$change_now(1, 1, 'big', 1, 150, 'up')$$);
SELECT t.says('20', $$refund(1, 'proration', (SELECT entry_id FROM wallet_entries WHERE idempotency_key = 'up'), 0, 20, 'late', 'b')$$);
SELECT is(paid_for_period(1, 0, anchor_at), 78::numeric, 'what is still paid') FROM subscriptions WHERE subscription_id = 1;
SELECT t.sound();
ROLLBACK;

-- ---- debts ----

-- Guarantee: A period that is written off is owed no more, moves no money, and is never charged.
BEGIN; SELECT t.test('write_off_gives_up_the_declined_period');
:paid
SELECT is(concat_ws(' ', state, next_period_no, retries), 'past_due 0 1', 'it could not be paid') FROM subscriptions WHERE subscription_id = 2;
SELECT t.says('LL003', $$write_off(2, 2, 1, 'gone', 'a')$$, 'another period is not declined');
SELECT t.says('50', $$write_off(2, 2, 0, 'gone', 'a')$$);
SELECT t.says('50', $$write_off(2, 2, 0, 'gone', 'a')$$);
SELECT t.says('LL001', $$write_off(2, 2, 1, 'gone', 'a')$$);
SELECT is(concat_ws(' ', state, next_period_no, retries), 'active 1 0', 'it goes on with the next') FROM subscriptions WHERE subscription_id = 2;
SELECT is(state, 'written_off', 'the charge says so') FROM charges WHERE subscription_id = 2;
SELECT t.says('LL003', $$write_off(2, 2, 1, 'gone', 'b')$$);
SELECT t.says('LL003', $$write_off(1, 1, 1, 'gone', 'b')$$);
SELECT t.says('LL002', $$write_off(1, 2, 0, 'gone', 'b')$$);
SELECT t.says('1010', $$deposit(2, 'USD', 1000, 'k')$$);
SELECT is(t.bill(), '0 captured, 0 declined', 'money that comes later does not pay it');
SELECT is(balance_minor, 1010::bigint, 'the wallet keeps all') FROM users WHERE user_id = 2;
SELECT t.sound();
ROLLBACK;

-- Guarantee: A deposit makes the periods due that it can pay, and a smaller one uses up no try.
BEGIN; SELECT t.test('deposit_makes_due_what_it_can_pay');
:paid
SELECT t.says('49', $$deposit(2, 'USD', 39, 'a')$$);
SELECT is(t.bill(), '0 captured, 0 declined', 'too little: nothing is tried');
SELECT t.says('50', $$deposit(2, 'USD', 1, 'b')$$);
SELECT is(t.bill(), '1 captured, 0 declined', 'enough: it is paid at once');
SELECT t.sound();
ROLLBACK;

SELECT t.done(94);
