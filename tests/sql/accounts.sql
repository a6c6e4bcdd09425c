-- create_user, subscribe and close_account: users and subscriptions are made once per key, and an account ends when nothing is left.
\set people 'SELECT t.user(1), t.user(2), t.sku(1, ''A'', 10, 250); ALTER TABLE users ALTER user_id RESTART WITH 100;'
SELECT no_plan();

-- Guarantee: A user is made once per name.
BEGIN; SELECT t.test('user_with_the_same_name_is_the_same_user');
:people
SELECT t.says('100', $$create_user('ann', 'EUR')$$);
SELECT t.says('100', $$create_user('ann', 'EUR')$$);
SELECT t.says('LL001', $$create_user('ann', 'USD')$$);
SELECT t.says('103', $$create_user('bob', 'EUR')$$, 'another name is another user');
SELECT t.says('LL002', format('create_user(%s)', arguments)) FROM (VALUES
  ($$'', 'USD'$$), ($$NULL, 'USD'$$), ($$repeat('e', 256), 'USD'$$), ($$'eve', 'usd'$$), ($$'eve', NULL$$)) AS v (arguments);
SELECT is(count(*), 2::bigint, 'two users with empty wallets') FROM users WHERE currency = 'EUR' AND balance_minor = 0;
ROLLBACK;

-- Guarantee: A subscription that is made twice under one key is one subscription.
BEGIN; SELECT t.test('subscription_with_the_same_key_is_the_same');
:people
SELECT t.says('1', $$subscribe(1, 'pro', 500, 'USD', 'month', 1, t.next_year(), 0, 'k')$$);
SELECT t.says('1', $$subscribe(1, 'pro', 500, 'USD', 'month', 1, t.next_year(), 0, 'k')$$);
SELECT t.says('2', $$subscribe(2, 'pro', 500, 'USD', 'month', 1, t.next_year(), 0, 'k')$$, 'the key of another user is another one');
SELECT t.says('LL001', format('subscribe(1, %s)', arguments)) FROM (VALUES
  ($$'pro', 501, 'USD', 'month', 1, t.next_year(), 0, 'k'$$), ($$'pro', 500, 'USD', 'month', 1, t.next_year(), 1, 'k'$$),
  ($$'new', 500, 'USD', 'month', 1, t.next_year(), 0, 'k'$$), ($$'pro', 500, 'USD', 'week', 1, t.next_year(), 0, 'k'$$),
  ($$'pro', 500, 'USD', 'month', 2, t.next_year(), 0, 'k'$$), ($$'pro', 500, 'USD', 'month', 1, t.next_year() - interval '1 day', 0, 'k'$$),
  ($$'pro', 500, 'USD', 'month', 1, t.next_year(), 0, 'another'$$)) AS v (arguments);
SELECT is(concat_ws(' ', count(*), min(amount_minor), min(state), bool_and(next_due_at = t.next_year())), '2 500 active t', 'both as they were made')
  FROM subscriptions WHERE terms_from_no IS NULL;
SELECT t.sound();
ROLLBACK;

BEGIN; SELECT t.test('subscription_that_is_none_is_refused');
:people
SELECT t.says('LL002', format('subscribe(%s)', arguments)) FROM (VALUES
  ($$9, 'p', 1, 'USD', 'month', 1, now(), 0, 'k'$$), ($$1, 'p', 1, 'EUR', 'month', 1, now(), 0, 'k'$$),
  ($$1, '', 1, 'USD', 'month', 1, now(), 0, 'k'$$), ($$1, 'p', 1, 'USD', 'month', 1, now(), 0, ''$$),
  ($$1, 'p', -1, 'USD', 'month', 1, now(), 0, 'k'$$), ($$1, 'p', 1, 'USD', 'hour', 1, now(), 0, 'k'$$),
  ($$1, 'p', 1, 'USD', 'month', 0, now(), 0, 'k'$$), ($$1, 'p', 1, 'USD', 'month', 1, now() - interval '2 days', 0, 'k'$$),
  ($$1, 'p', 1, 'USD', 'month', 1, 'infinity', 0, 'k'$$), ($$1, 'p', 1, 'USD', 'month', 1, now() + interval '2 years', 0, 'k'$$),
  ($$1, 'p', 1, 'USD', 'month', 1, now(), 1001, 'k'$$)) AS v (arguments);
SELECT is(count(*), 0::bigint, 'nothing is subscribed') FROM subscriptions;
ROLLBACK;

BEGIN; SELECT t.test('trial_is_terms_of_nothing');
:people
SELECT t.says('1', $$subscribe(1, 'pro', 500, 'USD', 'month', 1, t.next_year(), 2, 'k')$$);
SELECT is(array_agg(amount_minor ORDER BY no), '{0,0,500}', 'two periods are free, and the third is paid')
  FROM generate_series(0, 2) AS no, terms_of(1, no);
SELECT t.sound();
ROLLBACK;

-- Guarantee: An account is closed only when nothing is subscribed, ordered or left in its wallet, and nothing can be booked on it afterwards.
BEGIN; SELECT t.test('account_is_closed_when_nothing_is_left');
:people
SELECT t.says('1', $$subscribe(1, 'pro', 500, 'USD', 'month', 1, t.next_year(), 0, 'k')$$);
SELECT t.says('LL003', 'close_account(1)', 'a subscription is left');
SELECT t.says('true', $$cancel_subscription(1, 1, 'now') IS NOT NULL$$);
SELECT t.says('1', $$place_order(1, 'k', t.lines('A1'))$$);
SELECT t.says('LL003', 'close_account(1)', 'an order is left');
SELECT is(t.serve(), '0 fulfilled, 1 rejected', 'it is decided');
SELECT t.says('300', $$deposit(1, 'USD', 300, 'k')$$);
SELECT t.says('LL003', 'close_account(1)', 'money is left');
SELECT t.says('2', $$place_order(1, 'l', t.lines('A1'))$$);
SELECT is(t.serve(), '1 fulfilled, 0 rejected', 'some of it is spent');
SELECT t.says('0', $$withdraw(1, 'USD', 50, 'asked for', 'k')$$, 'and the rest is paid out');
SELECT t.says('true', 'close_account(1) IS NOT NULL');
SELECT t.says('true', 'close_account(1) = (SELECT closed_at FROM balance(1))', 'once more, and nothing changes');
SELECT t.says('LL003', call) FROM (VALUES
  ($$deposit(1, 'USD', 5, 'l')$$), ($$place_order(1, 'm', t.lines('A1'))$$), ($$refund(1, 'payment', 2, 0, 30, 'late', 'c')$$),
  ($$return_units(1, 2, 'A', 1, 'broken', 'c')$$), ($$subscribe(1, 'pro', 500, 'USD', 'month', 1, now(), 0, 'l')$$)) AS v (call);
SELECT t.says('LL002', 'close_account(9)', 'there is no such user');
SELECT is(count(*), 1::bigint, 'an event says so') FROM users JOIN events USING (user_id) WHERE event = 'closed' AND at = closed_at;
SELECT t.sound();
ROLLBACK;

-- Guarantee: An account is not closed over an order that was placed while close_account waited: it refuses every isolation level that would not see
-- it.
BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT t.test('account_is_closed_at_read_committed_alone');
:people
SELECT t.says('LL002', 'close_account(1)', 'repeatable read may miss what was written meanwhile');
ROLLBACK;
BEGIN ISOLATION LEVEL SERIALIZABLE;
:people
SELECT t.says('LL002', 'close_account(1)', 'and so may serializable');
ROLLBACK;

BEGIN; SELECT t.test('currency_is_three_capital_letters_wherever_it_is_kept');
:people
SET LOCAL ledgerlock.repair = on;
SELECT throws_ok(format('UPDATE %s SET currency = %L', name, word), '23514', NULL, format('"%s" is no currency of %s', word, name))
  FROM unnest('{users,stock}'::text[]) AS name, unnest(ARRAY['usd', 'US', 'USDT', 'U$D', '']) AS word;
ROLLBACK;

SELECT t.done(70);
