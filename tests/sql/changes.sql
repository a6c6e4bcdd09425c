-- pause_subscription, cancel_subscription and change_now: subscription 1 of user 1 runs in a period of ten days that began two days and
-- an hour ago, and is paid.
\set running 'SELECT t.user(1, 300), t.user(2), t.subscription(1, 1, 100, now() - interval ''49 hours'', ''day'', 10); SELECT t.bill();'
\set stands 'concat_ws('' '', state, next_period_no, extract(day FROM next_due_at - anchor_at))'
SELECT no_plan();

-- ---- pause ----

BEGIN; SELECT t.test('pause_from_a_named_period_is_made_once');
:running
SELECT t.says('true', 'pause_subscription(1, 1, 2, 1) = pause_subscription(1, 1, 2, 1)');
SELECT is(:stands, 'active 3 30', 'two periods are left out') FROM subscriptions;
SELECT t.says('LL002', 'pause_subscription(1, 1, 3, 1)', 'more of them is another pause');
SELECT t.says('LL002', 'pause_subscription(1, 1, 1, 7)', 'a later period is not the next');
SELECT is(string_agg(state, ' ' ORDER BY period_no), 'captured skipped skipped', 'each has its charge') FROM charges;
SELECT t.sound();
ROLLBACK;

BEGIN; SELECT t.test('pause_of_what_is_tried_or_over_is_refused');
:running
SELECT t.says('LL002', format('pause_subscription(%s)', arguments)) FROM (VALUES
  ('1, 1, 1, 0'), ('1, 1, 1, NULL'), ('2, 1, 1, 1'), ('1, 1, 0, 1'), ('1, 1, NULL, 1'), ('1, 1, 1001, 1')) AS v (arguments);
UPDATE subscriptions SET cancel_at = next_due_at + interval '10 days';
SELECT t.says('LL003', 'pause_subscription(1, 1, 2, 1)', 'the second would begin at the end');
SELECT t.says('true', 'pause_subscription(1, 1, 1, 1) > now()');
UPDATE subscriptions SET state = 'past_due', retries = 1;
SELECT t.says('LL003', 'pause_subscription(1, 1, 1, 2)', 'a period that was tried is owed');
ROLLBACK;

-- ---- cancel ----

-- Guarantee: A subscription that is cancelled now is cancelled at once, up to what is paid.
BEGIN; SELECT t.test('cancel_now_ends_it_at_once');
:running
SELECT t.says('true', 'cancel_subscription(1, 1) > now() + interval ''7 days''');
SELECT is(:stands, 'active 1 10', 'it ends with its period') FROM subscriptions;
SELECT t.says('true', $$cancel_subscription(1, 1, 'now') > now() + interval '7 days'$$);
SELECT is(:stands, 'cancelled 1 10', 'it is over') FROM subscriptions;
SELECT t.says('true', $$cancel_subscription(1, 1, 'now') > now() + interval '7 days'$$, 'once more, and nothing changes');
SELECT is(count(*), 2::bigint, 'an event each') FROM events WHERE event IN ('cancel_set', 'cancelled');
SELECT t.says('LL002', $$cancel_subscription(1, 1, 'soon')$$);
SELECT t.says('LL002', $$cancel_subscription(1, 1, NULL)$$);
SELECT t.sound();
ROLLBACK;

BEGIN; SELECT t.test('cancel_now_gives_up_what_has_begun');
:running
SELECT t.subscription(2, 1, 100, now() - interval '1 hour');
SELECT t.says('true', $$cancel_subscription(1, 2, 'now') < now()$$);
SELECT is(t.bill(), '0 captured, 0 declined', 'its first period is never tried');
SELECT t.sound();
ROLLBACK;

-- Guarantee: A subscription that is cancelled at the very start of a period is charged for that period and no other.
BEGIN; SELECT t.test('cancel_at_the_start_of_a_period_ends_after_it');
SELECT t.user(1, 300), t.subscription(1, 1, 100, '2024-01-31Z');
SELECT t.bill('2024-01-31Z');
SELECT t.says('2024-03-31 00:00:00+00', $$cancel_subscription(1, 1, p_at => '2024-02-29Z')$$, 'it is charged until the next', 'postgres');
SELECT is(t.bill('2024-05-05Z'), '1 captured, 0 declined', 'that period, and no other');
SELECT is(state, 'cancelled', 'then it is over') FROM subscriptions;
SELECT t.sound('2024-05-05Z');
ROLLBACK;

BEGIN; SELECT t.test('cancel_ends_with_the_period_of_any_plan');
SELECT t.user(1, 300);
SELECT t.subscription(n, 1, 100, '2024-01-31Z', unit, every)
  FROM (VALUES (1, 'day', 1), (2, 'week', 2), (3, 'month', 1), (4, 'month', 3), (5, 'year', 1)) AS v (n, unit, every);
SELECT t.says(ends, format('cancel_subscription(1, %s, p_at => %L)::date', n, at), NULL, 'postgres') FROM (VALUES
  (1, '2024-03-01T12:00Z', '2024-03-02'), (2, '2024-03-01Z', '2024-03-13'), (3, '2025-02-27Z', '2025-02-28'),
  (4, '2025-01-30Z', '2025-01-31'), (5, '2033-01-30Z', '2033-01-31')) AS v (n, at, ends);
ROLLBACK;

-- ---- proration: seven whole days of ten are left ----

-- Guarantee: Terms that change in a paid period charge or give back the difference for the whole days that are left, once per key, and count
-- from the next period on.
BEGIN; SELECT t.test('change_in_a_paid_period_is_prorated');
:running
SELECT t.says('42', $$change_now(1, 1, 'duo', 2, 80, 'up')$$);
SELECT t.says('42', $$change_now(1, 1, 'duo', 2, 80, 'up')$$);
SELECT t.says('-105', $$change_now(1, 1, 'solo', 1, 10, 'down')$$);
SELECT is(balance_minor, 263::bigint, 'each once') FROM users WHERE user_id = 1;
SELECT is(amount_minor || ' ' || plan, '10 solo', 'the next period has the last terms') FROM terms_of(1, 1);
SELECT is(string_agg(debit || ' ' || amount_minor, ', ' ORDER BY source), 'wallet 42, subscription_revenue 105', 'an entry each')
  FROM ledger WHERE kind = 'proration';
SELECT t.says('LL001', $$change_now(1, 1, 'duo', 2, 81, 'up')$$);
SELECT t.says('LL001', $$change_now(1, 1, 'duo', 4611686018427387904, 4, 'up')$$);
SELECT t.says('LL002', $$change_now(1, 1, 'duo', 4611686018427387904, 4, 'large')$$);
SELECT t.sound();
ROLLBACK;

BEGIN; SELECT t.test('change_that_costs_nothing_moves_nothing');
:running
SELECT t.says('0', $$change_now(1, 1, 'other', 1, 100, 'k')$$);
SELECT is(count(*), 0::bigint, 'no money moves') FROM ledger WHERE kind = 'proration';
SELECT is(plan, 'other', 'the terms are changed') FROM terms_of(1, 1);
SELECT t.sound();
ROLLBACK;

BEGIN; SELECT t.test('change_that_the_wallet_cannot_pay_is_refused');
:running
SELECT t.says('LL003', $$change_now(1, 1, 'duo', 1, 387, 'k')$$);
SELECT is(count(*), 0::bigint, 'the terms stay') FROM subscription_terms;
SELECT t.says('200', $$change_now(1, 1, 'duo', 1, 386, 'k')$$, 'all that is in the wallet');
SELECT t.sound();
ROLLBACK;

BEGIN; SELECT t.test('change_without_a_paid_period_is_refused');
:running
SELECT t.says('LL002', format('change_now(%s)', arguments)) FROM (VALUES
  ($$2, 1, 'p', 1, 1, 'k'$$), ($$1, 1, 'p', 1, 1, ''$$), ($$1, 1, 'p', 0, 1, 'k'$$)) AS v (arguments);
SELECT t.says('true', 'pause_subscription(1, 1, 1, 1) > now()');
SELECT t.says('LL003', $$change_now(1, 1, 'p', 1, 1, 'k')$$, 'the latest period was skipped');
SELECT t.says('true', $$cancel_subscription(1, 1, 'now') > now()$$);
SELECT t.says('LL003', $$change_now(1, 1, 'p', 1, 1, 'k')$$, 'it is cancelled');
ROLLBACK;

BEGIN; SELECT t.test('change_that_gives_back_pays_what_is_past_due');
:running
SELECT t.says('201', $$deposit(1, 'USD', 1, 'l')$$);
SELECT t.subscription(2, 1, 205, now() - interval '1 hour');
SELECT is(t.bill(), '0 captured, 1 declined', 'the wallet cannot pay the second');
SELECT t.says('-35', $$change_now(1, 1, 'p', 1, 50, 'k')$$);
SELECT is(t.bill(), '1 captured, 0 declined', 'now it can, and it is tried at once');
SELECT t.sound();
ROLLBACK;

-- Guarantee: A proration is rounded to the nearest minor unit, and from the middle in favour of the customer.
BEGIN; SELECT t.test('proration_is_rounded_in_favour_of_the_customer');
SELECT is(prorated(old, new, days_left, days), amount, format('from %s to %s for %s of %s days', old, new, days_left, days)) FROM (VALUES
  (0, 5, 1, 2, 2), (0, 26, 1, 10, 3), (0, 24, 1, 10, 2), (5, 0, 1, 2, -3), (24, 0, 1, 10, -2), (26, 0, 1, 10, -3), (1, 1, 3, 7, 0),
  (0, 1, 1, 2, 0), (1, 0, 1, 2, -1), (0, 9223372036854775807, 30, 30, 9223372036854775807),
  (9223372036854775807, 0, 20, 30, -6148914691236517205)) AS v (old, new, days_left, days, amount);
ROLLBACK;

SELECT t.done(77);
