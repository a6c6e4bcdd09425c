-- set_terms and set_price: what a subscription is and costs from a period on, as support sets it.
\set sub 'SELECT t.user(1), t.user(2), t.subscription(1, 1, 100, ''2024-01-31Z''); UPDATE subscriptions SET next_period_no = 1, next_due_at = ''2024-02-29Z'';'
\set behind 'UPDATE subscriptions SET state = ''past_due'', retries = 1;'
SELECT no_plan();

-- Guarantee: Terms change from a period on that was not tried yet, and never for one that was.
BEGIN; SELECT t.test('terms_count_from_their_period_on');
:sub
SELECT t.says('2024-04-30 00:00:00+00', $$set_terms(1, 1, 3, 'duo', 2, 80)$$, 'the start of the period');
SELECT is(string_agg(concat_ws(' ', amount_minor, quantity, plan), ', ' ORDER BY no), '100 1 plan 1, 100 1 plan 1, 160 2 duo, 160 2 duo',
          'from the third on') FROM generate_series(1, 4) AS no, terms_of(1, no);
SELECT is(terms_from_no || ' ' || amount_minor, '3 100', 'the contract itself stays') FROM subscriptions;
SELECT t.says('LL002', $$set_terms(1, 1, 0, 'duo', 2, 80)$$, 'that period was charged');
:behind
SELECT t.says('LL002', $$set_terms(1, 1, 1, 'duo', 2, 80)$$, 'that period was declined');
SELECT t.says('true', $$set_terms(1, 1, 2, 'duo', 2, 80) IS NOT NULL$$);
ROLLBACK;

BEGIN; SELECT t.test('terms_without_a_period_count_from_the_next_that_is_untried');
:sub
SELECT t.says('true', $$set_terms(1, 1, NULL, 'duo', 2, 80) IS NOT NULL$$);
:behind
SELECT t.says('true', $$set_terms(1, 1, NULL, 'trio', 3, 80) IS NOT NULL$$);
SELECT is(string_agg(from_period || ' ' || plan, ', ' ORDER BY from_period), '1 duo, 2 trio', 'the first and the second') FROM subscription_terms;
ROLLBACK;

BEGIN; SELECT t.test('terms_set_again_are_the_same_and_the_last_ones_count');
:sub
SELECT t.says('true', $$set_terms(1, 1, 3, 'duo', 2, 80) = set_terms(1, 1, 3, 'duo', 2, 80)$$);
SELECT is(count(*), 1::bigint, 'set once') FROM subscription_terms;
SELECT t.says('true', $$set_terms(1, 1, 3, 'duo', 2, 90) IS NOT NULL AND set_terms(1, 1, 2, 'trio', 3, 10) IS NOT NULL$$);
SELECT is(concat_ws(' ', terms_from_no, (SELECT amount_minor FROM terms_of(1, 2)), (SELECT amount_minor FROM terms_of(1, 3))), '2 30 30',
          'the last decision counts for every later period') FROM subscriptions;
SELECT t.says('true', $$set_terms(1, 1, 3, 'duo', 2, 80) IS NOT NULL$$, 'not again: others came between');
SELECT is(count(*) || ' ' || (SELECT amount_minor FROM terms_of(1, 3)), '4 160', 'each is a decision with its event') FROM events WHERE event = 'terms';
ROLLBACK;

BEGIN; SELECT t.test('price_keeps_plan_and_quantity_of_its_period');
:sub
SELECT t.says('true', $$set_terms(1, 1, 3, 'duo', 2, 80) IS NOT NULL$$);
SELECT t.says('true', 'set_price(1, 1, 4, 70) IS NOT NULL AND set_price(1, 1, 2, 50) IS NOT NULL');
SELECT is(string_agg(amount_minor || ' ' || plan, ', ' ORDER BY no), '50 plan 1, 100 duo, 100 duo', 'the plan of each, and the last price')
  FROM generate_series(2, 4) AS no, terms_of(1, no);
ROLLBACK;

BEGIN; SELECT t.test('terms_that_are_none_are_refused');
:sub
SELECT t.would('LL002', call) FROM (VALUES
  ($$set_terms(2, 1, 3, 'p', 1, 1)$$), ($$set_price(2, 1, 3, 1)$$), ($$set_price(1, 1, NULL, 1)$$), ($$set_terms(1, 9, 3, 'p', 1, 1)$$),
  ($$set_terms(1, 1, 3, '', 1, 1)$$), ($$set_terms(1, 1, 3, 'p', 0, 1)$$), ($$set_terms(1, 1, 3, 'p', 1, -1)$$),
  ($$set_terms(1, 1, 3, 'p', 2, 4611686018427387904)$$), ($$set_terms(1, 1, 1002, 'p', 1, 1)$$)) AS v (call);
SELECT t.would('2024-04-30 00:00:00+00', $$set_terms(1, 1, 3, 'p', 1, 9223372036854775807)$$, 'the most that fits into 64 bits');
SELECT t.would('2107-06-30 00:00:00+00', $$set_terms(1, 1, 1001, 'p', 1, 0)$$, 'as far ahead as may be, for nothing');
UPDATE subscriptions SET state = 'cancelled', cancel_at = next_due_at;
SELECT t.says('LL003', $$set_terms(1, 1, 3, 'duo', 2, 80)$$, 'it is cancelled');
ROLLBACK;

-- Guarantee: Each period is charged by the terms that count for it.
BEGIN; SELECT t.test('periods_are_charged_by_their_terms');
SELECT t.user(1, 1000), t.subscription(1, 1, 100, '2024-01-31Z');
SELECT t.says('true', $$set_terms(1, 1, 1, 'duo', 2, 80) IS NOT NULL AND set_terms(1, 1, 3, 'free', 1, 0) IS NOT NULL$$);
SELECT is(t.bill('2024-04-30Z'), '4 captured, 0 declined', 'four periods have begun');
SELECT is(array_agg(amount_minor ORDER BY period_no), '{100,160,160,0}', 'each costs what its terms say') FROM charges;
SELECT is(count(*), 3::bigint, 'nothing moves for a free one') FROM ledger WHERE kind = 'charge';
SELECT t.sound('2024-04-30Z');
ROLLBACK;

SELECT t.done(35);
