-- The rules of billing, straight on claim_users and apply_charges: which periods are charged, in which order, what a decline does, and when
-- a subscription ends.
-- User 1 has 0.99, and a subscription of 1.00 a month, declined at 09:00 on 1 January; with these pauses until later tries.
\set declined 'SELECT t.user(1, 99), t.subscription(1, 1, 100, ''2024-01-01 08:00Z''); SELECT t.bill(''2024-01-01 09:00Z'');'
\set schedule 'INSERT INTO retry_schedules (pauses_s) VALUES'
-- State, next period, its time, and retries of subscription 1; and number, state, tries and amount of each of its periods.
\set stands '(SELECT concat_ws('' '', state, next_period_no, to_char(next_due_at, ''MM-DD HH24:MI''), retries) FROM subscriptions WHERE subscription_id = 1)'
\set periods '(SELECT string_agg(concat_ws('' '', period_no, state, tries, amount_minor), '', '' ORDER BY period_no) FROM charges WHERE subscription_id = 1)'
\set all '(SELECT string_agg(concat_ws('' '', subscription_id, state, next_period_no), '', '' ORDER BY subscription_id) FROM subscriptions)'
\set wallet '(SELECT balance_minor FROM users WHERE user_id = 1)'
SELECT no_plan();

-- ---- order and time ----

-- Guarantee: A subscription that is many periods behind is charged oldest first, and no period is left out.
BEGIN; SELECT t.test('catch_up_bills_oldest_first_and_skips_none');
SELECT t.user(1, 500), t.subscription(1, 1, 100, '2023-01-31Z');
SELECT is(t.bill('2024-01-15Z'), '5 captured, 1 declined', 'as long as the money lasts');
SELECT is(string_agg(leg::text, ',' ORDER BY (SELECT batch_id FROM batches WHERE token = fence)), '0,1,2,3,4', 'the oldest first')
  FROM ledger JOIN charges ON subscription_id = source AND period_no = leg WHERE kind = 'charge';
SELECT is(:stands, 'past_due 5 01-16 00:00 1', 'the next could not be paid');
SELECT is(period_start, '2023-06-30Z', 'that of June') FROM charges WHERE state = 'declined';
SELECT t.sound('2024-01-15Z');
ROLLBACK;

-- Guarantee: A period is charged from its first microsecond on, and not before.
BEGIN; SELECT t.test('period_is_due_at_its_start_and_not_before');
SELECT t.user(1, 500), t.subscription(1, 1, 100, '2024-01-31 12:00Z');
SELECT is(t.bill('2024-01-31 11:59:59.999999Z'), '0 captured, 0 declined', 'not before');
SELECT is(fence, 0::bigint, 'and nothing is written') FROM users;
SELECT is(t.bill('2024-01-31 12:00Z'), '1 captured, 0 declined', 'at its start');
SELECT is(:wallet, 400::bigint, 'it is paid');
ROLLBACK;

-- Guarantee: A period begins on the day of the anchor, or on the last day of a month that has no such day.
BEGIN; SELECT t.test('periods_follow_the_calendar');
SELECT is((SELECT string_agg(to_char(period_start(anchor, unit, every, no), 'YYYY-MM-DD'), ' ' ORDER BY no) FROM generate_series(0, 4) AS no), starts,
          format('every %s %s from %s', every, unit, anchor::date)) FROM (VALUES
  ('2024-01-31Z'::timestamptz, 'month', 1, '2024-01-31 2024-02-29 2024-03-31 2024-04-30 2024-05-31'),
  ('2023-01-30Z', 'month', 1, '2023-01-30 2023-02-28 2023-03-30 2023-04-30 2023-05-30'),
  ('2023-11-30Z', 'month', 3, '2023-11-30 2024-02-29 2024-05-30 2024-08-30 2024-11-30'),
  ('2024-02-29Z', 'year', 1, '2024-02-29 2025-02-28 2026-02-28 2027-02-28 2028-02-29'),
  ('1899-12-31Z', 'month', 1, '1899-12-31 1900-01-31 1900-02-28 1900-03-31 1900-04-30'),
  ('2024-02-26Z', 'week', 1, '2024-02-26 2024-03-04 2024-03-11 2024-03-18 2024-03-25'),
  ('2024-02-27Z', 'day', 1, '2024-02-27 2024-02-28 2024-02-29 2024-03-01 2024-03-02')) AS v (anchor, unit, every, starts);
SET LOCAL timezone = 'America/New_York';
SELECT is(extract(epoch FROM period_start('2024-03-09 12:00Z', 'day', 1, 2) - '2024-03-09 12:00Z')::int, 172800, 'a day has 24 hours in every zone of a session');
ROLLBACK;

-- In every zone of the session the offset and the name of UTC tell the same.
BEGIN; SELECT t.test('period_start_is_the_same_by_offset_and_by_name');
SET LOCAL timezone = 'America/Sao_Paulo';
SELECT ok(bool_and(period_start(at, unit, every, no) = (at AT TIME ZONE 'UTC' + no * every * ('1 ' || unit)::interval) AT TIME ZONE 'UTC') AND count(*) > 40000,
          'at 40,000 times') FROM generate_series(timestamptz '1999-12-31 23:59:59.999999Z', '2005-01-01Z', '31 hours') AS at,
       unnest('{day,week,month,year}'::text[]) AS unit, unnest('{1,7}'::int[]) AS every, unnest('{0,1,13,1001}'::int[]) AS no;
ROLLBACK;

-- Guarantee: A second run over the same rows charges nothing.
BEGIN; SELECT t.test('run_again_over_the_same_data_charges_nothing');
SELECT t.user(u, 50 * u) FROM generate_series(1, 40) AS u;
SELECT t.subscription(3 * u + p, u, 100 * p, timestamptz '2024-01-01Z' + u * interval '7 hours') FROM generate_series(1, 40) AS u, generate_series(0, 2) AS p;
SELECT isnt(t.bill('2024-03-01Z'), '0 captured, 0 declined', 'a run');
SELECT is(t.bill('2024-03-01Z'), '0 captured, 0 declined', 'and another one');
SELECT t.sound('2024-03-01Z');
ROLLBACK;

-- ---- the wallet ----

-- Guarantee: Periods of one user are paid in the order in which they fell due, while the money lasts; a dear one keeps no cheaper one back.
BEGIN; SELECT t.test('wallet_for_one_of_two_pays_the_oldest_and_the_other_later');
SELECT t.user(1, 150), t.subscription(1, 1, 100, '2024-01-02Z'), t.subscription(2, 1, 100, '2024-01-01Z');
SELECT is(t.bill('2024-01-05Z'), '1 captured, 1 declined', 'the wallet has enough for one');
SELECT is(:all, '1 past_due 0, 2 active 1', 'the older is paid');
SELECT deposit(1, 'USD', 50, 'more', '2024-01-06Z');
SELECT is(t.bill('2024-01-06Z'), '1 captured, 0 declined', 'the other one as soon as there is money');
SELECT is(:wallet, 0::bigint, 'the wallet is empty');
SELECT t.sound('2024-01-06Z');
ROLLBACK;

BEGIN; SELECT t.test('wallet_too_small_for_one_still_pays_a_smaller_one_behind');
SELECT t.user(1, 100), t.subscription(1, 1, 60, '2024-01-01Z'), t.subscription(2, 1, 100, '2024-01-02Z'),
       t.subscription(3, 1, 30, '2024-01-03Z'), t.subscription(4, 1, 11, '2024-01-04Z');
SELECT is(t.bill('2024-01-05Z'), '2 captured, 2 declined', 'each is tried once');
SELECT is(:all, '1 active 1, 2 past_due 0, 3 active 1, 4 past_due 0', 'those that fit are paid');
SELECT is(:wallet, 10::bigint, 'the rest is too little');
ROLLBACK;

BEGIN; SELECT t.test('wallet_shared_by_due_ties_pays_the_lowest_number');
SELECT t.user(1, 100), t.subscription(2, 1, 100, '2024-01-01Z'), t.subscription(1, 1, 100, '2024-01-01Z');
SELECT is(t.bill('2024-01-05Z'), '1 captured, 1 declined', 'the wallet has enough for one');
SELECT is(:all, '1 active 1, 2 past_due 0', 'the lower number is paid');
ROLLBACK;

BEGIN; SELECT t.test('amounts_near_the_limit_do_not_overflow');
SELECT t.user(1, 9223372036854775807), t.subscription(1, 1, 9223372036854775807, '2024-01-01Z'), t.subscription(2, 1, 9223372036854775807, '2024-01-02Z');
SELECT is(t.bill('2024-01-05Z'), '1 captured, 1 declined', 'both are tried');
SELECT is(:all, '1 active 1, 2 past_due 0', 'the first took all');
SELECT t.sound('2024-01-05Z');
ROLLBACK;

-- ---- declines ----

-- Guarantee: A period that was declined is tried again on the schedule, and given up when the schedule is used up.
BEGIN; SELECT t.test('decline_is_retried_on_schedule_and_then_given_up');
:schedule ('{3600,172800}');
:declined
SELECT is(:stands, 'past_due 0 01-01 10:00 1', 'declined once');
SELECT is(t.bill('2024-01-01 09:59:59Z'), '0 captured, 0 declined', 'nothing before the pause is over');
SELECT is(t.bill('2024-01-01 10:00Z'), '0 captured, 1 declined', 'the second try');
SELECT is(:stands, 'past_due 0 01-03 10:00 2', 'the pause is the second one');
SELECT is(t.bill('2024-01-04Z'), '0 captured, 1 declined', 'the third try');
SELECT is(:stands, 'unpaid 0 01-03 10:00 3', 'the schedule is used up');
SELECT is(t.bill('2024-06-01Z'), '0 captured, 0 declined', 'nothing more is tried');
SELECT is(:periods, '0 declined 3 100', 'one row of three tries');
SELECT is(:wallet, 99::bigint, 'nothing was taken');
SELECT t.sound('2024-06-01Z');
ROLLBACK;

BEGIN; SELECT t.test('resume_without_money_gives_exactly_one_more_try');
:schedule ('{3600}');
:declined
SELECT is(t.bill('2024-01-01 10:00Z'), '0 captured, 1 declined', 'given up');
SELECT is(resume_subscription(1, 1, 'bill_all', '2024-02-01Z'), true, 'resumed');
SELECT is(resume_subscription(1, 1, 'bill_all', '2024-02-01Z'), false, 'once');
SELECT is(t.bill('2024-02-01Z'), '0 captured, 1 declined', 'one more try');
SELECT is(:stands, 'unpaid 0 02-01 00:00 3', 'given up again');
ROLLBACK;

BEGIN; SELECT t.test('retry_that_is_paid_captures_the_declined_row_and_goes_on');
:schedule ('{86400}');
:declined
SELECT deposit(1, 'USD', 201, 'more', '2024-01-01 10:00Z');
SELECT is(t.bill('2024-03-01 07:00Z'), '2 captured, 0 declined', 'the debt, and the period behind it');
SELECT is(:periods, '0 captured 2 100, 1 captured 1 100', 'the row of the declined period is captured');
SELECT is(:stands, 'active 2 03-01 08:00 0', 'it goes on');
SELECT t.sound('2024-03-01 07:00Z');
ROLLBACK;

-- ---- the end ----

-- Guarantee: A period that begins before the end is charged, and none that begins at it.
BEGIN; SELECT t.test('cancel_bills_up_to_the_boundary_and_nothing_from_it_on');
SELECT t.user(1, 10000), t.subscription(1, 1, 100, '2024-01-31Z'), t.subscription(2, 1, 100, '2024-01-31Z');
UPDATE subscriptions SET cancel_at = CASE subscription_id WHEN 1 THEN timestamptz '2024-04-30Z' ELSE '2024-04-30 00:00:01Z' END;
SELECT is(t.bill('2025-01-01Z'), '7 captured, 0 declined', 'three and four');
SELECT is(:all, '1 cancelled 3, 2 cancelled 4', 'then both are over');
SELECT t.sound('2025-01-01Z');
ROLLBACK;

BEGIN; SELECT t.test('cancel_while_past_due_still_owes_the_period_that_has_begun');
:schedule ('{3600}');
:declined
SELECT deposit(1, 'USD', 1000, 'more', '2024-01-01 09:30Z'), cancel_subscription(1, 1, p_at => '2024-01-01 12:00Z');
SELECT is(t.bill('2024-02-01 07:00Z'), '1 captured, 0 declined', 'it is still paid');
SELECT is(t.bill('2024-02-01 08:00Z'), '0 captured, 0 declined', 'and no other');
SELECT is(:stands, 'cancelled 1 02-01 08:00 0', 'it is over');
SELECT t.sound('2024-02-01 08:00Z');
ROLLBACK;

BEGIN; SELECT t.test('cancelled_one_does_not_eat_the_wallet_of_those_behind');
SELECT t.user(1, 100), t.subscription(1, 1, 100, '2024-01-01Z'), t.subscription(2, 1, 100, '2024-01-02Z');
SELECT cancel_subscription(1, 1, p_at => '2023-12-31Z');
SELECT is(t.bill('2024-01-05Z'), '1 captured, 0 declined', 'the other one is paid');
SELECT is(:all, '1 cancelled 0, 2 active 1', 'the first is over');
ROLLBACK;

BEGIN; SELECT t.test('cancelled_now_is_charged_no_more');
:schedule ('{86400}');
:declined
SELECT cancel_subscription(1, 1, 'now', '2024-01-01 12:00Z'), deposit(1, 'USD', 1000, 'late', '2024-01-01 13:00Z');
SELECT is(t.bill('2024-06-01Z'), '0 captured, 0 declined', 'nothing is tried');
SELECT is(:periods, '0 declined 1 100', 'the debt is given up');
SELECT t.sound('2024-06-01Z');
ROLLBACK;

-- ---- what is too far behind ----

-- Guarantee: A subscription with more periods due than the limit of a run is refused, with the number in words.
BEGIN; SELECT t.test('subscription_too_far_behind_is_refused');
SELECT t.user(1, 1000), t.subscription(1, 1, 1, '2024-01-02Z', 'day'), t.subscription(2, 1, 1, '2024-01-01Z', 'day'),
       t.subscription(3, 1, 1, '2023-01-01Z'), t.subscription(4, 1, 1, '2014-06-01Z', 'year');
CREATE FUNCTION pg_temp.charge(p_id bigint, p_at timestamptz, p_max bigint) RETURNS text LANGUAGE sql AS $$
  SELECT format('captured FROM apply_charges(t.new_batch(), ''w'', %L, ARRAY[%s], ARRAY[(SELECT ctid FROM subscriptions WHERE subscription_id = %2$s)], ''{1}'', %s)',
                p_at, p_id, p_max) $$;
SELECT make_months('2014-06-01Z', '2014-06-01Z');
SELECT t.would(answer, pg_temp.charge(id, '2024-01-11 12:00Z', 10), words, 'postgres') FROM (VALUES
  (1, '1', '10 days due'), (2, '22003', '11 days due'), (3, '22003', '13 months due'), (4, '1', '10 years due')) AS v (id, answer, words);
SELECT t.would('1', pg_temp.charge(2, '2024-01-11 12:00Z', 11), 'a higher limit lets it pass', 'postgres');
SELECT is((t.ask(pg_temp.charge(2, '2024-01-11 12:00Z', 10), 'postgres', true)).words,
          'subscription 2 has 11 periods due, more than billing.catch_up_max (10); raise it, then release it', 'the words');
SELECT cancel_subscription(1, 2, p_at => '2023-12-31Z');
SELECT t.would('0', pg_temp.charge(2, '2024-01-11 12:00Z', 10), 'an end in the past is not behind', 'postgres');
ROLLBACK;

SELECT t.done(72);
