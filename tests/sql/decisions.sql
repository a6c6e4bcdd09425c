-- Decisions about a subscription: a later one wins over an earlier one, a trial is no decision, what was refunded is not given back
-- again, and an end may be brought forward or taken back.
SELECT no_plan();

-- Guarantee: A plan that is chosen in a trial stays when the trial ends, and the trial stays free.
BEGIN; SELECT t.test('plan_chosen_in_a_trial_stays');
SELECT t.user(1, 100000), subscribe(1, 'basic', 900, 'USD', 'day', 1, '2024-01-10Z', 3, 's');
SELECT is(t.bill('2024-01-10 01:00Z'), '1 captured, 0 declined', 'the first day is free, and captured');
SELECT t.says('0', $$change_now(1, 1, 'pro', 1, 5000, 'c', '2024-01-10 01:00Z')$$, 'the rest of a free day costs nothing', 'postgres');
SELECT is(string_agg(plan || ' ' || amount_minor, ', ' ORDER BY no), 'basic 0, pro 0, pro 0, pro 5000, pro 5000', 'free for three days, and pro for good')
  FROM generate_series(0, 4) AS no, terms_of(1, no);
SELECT t.says('true', $$set_terms(1, 1, 2, NULL, 2, NULL) IS NOT NULL$$, 'two units');
SELECT is(string_agg(amount_minor::text, ', ' ORDER BY no), '0, 0, 10000, 10000', 'the trial is free whatever the terms') FROM generate_series(1, 4) AS no, terms_of(1, no);
SELECT is(t.bill('2024-01-13 01:00Z'), '3 captured, 0 declined', 'two free days, and one that costs');
SELECT is(balance_minor, 90000::bigint, 'once 100.00') FROM users WHERE user_id = 1;
SELECT t.says('1', $$subscribe(1, 'basic', 900, 'USD', 'day', 1, '2024-01-10Z', 3, 's')$$, 'the same key is the same subscription', 'postgres');
SELECT t.says('LL001', $$subscribe(1, 'basic', 900, 'USD', 'day', 1, '2024-01-10Z', 2, 's')$$, 'with another trial it is another', 'postgres');
SELECT t.sound('2024-01-13 01:00Z');
ROLLBACK;

-- Guarantee: A later decision about terms wins over an earlier one for every period that it is for, in what it changes.
BEGIN; SELECT t.test('later_decision_wins_in_what_it_changes');
SELECT t.user(1, 100000), t.subscription(1, 1, 900, '2024-01-10Z', 'day', 10);
SELECT is(t.bill('2024-01-10 01:00Z'), '1 captured, 0 declined', 'the first period is paid');
SELECT t.says('true', 'set_price(1, 1, 3, 1000) IS NOT NULL', 'a price to come');
SELECT t.says('true', $$change_now(1, 1, 'pro', 2, 5000, 'c', '2024-01-10 01:00Z') > 0$$, 'an upgrade', 'postgres');
SELECT is(string_agg(concat_ws(' ', plan, quantity, unit_minor, amount_minor), ', ' ORDER BY no), 'pro 2 5000 10000, pro 2 5000 10000, pro 2 5000 10000',
          'no price from before the upgrade comes back') FROM generate_series(1, 3) AS no, terms_of(1, no);
SELECT t.says('true', 'set_price(1, 1, 2, 6000) IS NOT NULL', 'a price to come, after the upgrade');
SELECT t.says('true', 'set_terms(1, 1, 4, NULL, 3, NULL) IS NOT NULL', 'a unit more, later');
SELECT is(string_agg(concat_ws(' ', plan, quantity, unit_minor, amount_minor), ', ' ORDER BY no), 'pro 2 5000 10000, pro 2 6000 12000, pro 2 6000 12000, pro 3 6000 18000',
          'each changes what it says, and no more') FROM generate_series(1, 4) AS no, terms_of(1, no);
SELECT t.says('LL002', 'set_terms(1, 1, 5, NULL, NULL, NULL)', 'a decision that changes nothing');
SELECT t.says('LL002', 'set_price(1, 1, 5, NULL)', 'no price');
SELECT t.says('LL002', $$change_now(1, 1, 'pro', NULL, 5000, 'd', '2024-01-10 01:00Z')$$, 'a change names all', 'postgres');
SELECT t.says('LL002', 'set_terms(1, 1, 1, NULL, 9223372036854775807, NULL)', 'with the price it does not fit into 64 bits');
SELECT t.says('LL002', 'set_terms(1, 1, 4, NULL, NULL, 9223372036854775807)', 'nor with the quantity of that period');
SELECT is(count(*), 4::bigint, 'what was refused is no decision') FROM subscription_terms;
SELECT is(t.bill('2024-02-20 01:00Z'), '4 captured, 0 declined', 'four periods more');
SELECT is(string_agg(amount_minor::text, ', ' ORDER BY period_no), '900, 10000, 12000, 12000, 18000', 'each charged by its terms') FROM charges;
SELECT t.sound('2024-02-20 01:00Z');
ROLLBACK;

-- Guarantee: A credit is computed from what is still paid: what was refunded is not given back again.
BEGIN; SELECT t.test('refunded_upgrade_is_not_credited_again');
SELECT t.user(1, 100000), t.subscription(1, 1, 3000, '2024-01-10Z', 'day', 10);
SELECT is(t.bill('2024-01-10 01:00Z'), '1 captured, 0 declined', '30.00 are paid');
SELECT t.says('2700', $$change_now(1, 1, 'pro', 1, 6000, 'c1', '2024-01-10 01:00Z')$$, 'an upgrade for nine days', 'postgres');
SELECT t.says('2700', $$refund(1, 'proration', (SELECT entry_id FROM wallet_entries WHERE kind = 'proration'), 0, NULL, 'a mistake', 'r1', '2024-01-10 01:00Z')$$, 'refunded in full', 'postgres');
SELECT t.says('0', $$change_now(1, 1, 'basic', 1, 3000, 'c2', '2024-01-10 01:00Z')$$, 'the way back gives back nothing more', 'postgres');
SELECT is(balance_minor, 97000::bigint, 'the period cost 30.00') FROM users WHERE user_id = 1;
SELECT t.says('-1800', $$change_now(1, 1, 'small', 1, 1000, 'c3', '2024-01-10 01:00Z')$$, 'a smaller plan gives back the difference to what is paid', 'postgres');
SELECT t.says('900', $$change_now(1, 1, 'basic', 1, 2000, 'c4', '2024-01-10 01:00Z')$$, 'a larger one costs the difference to the terms before', 'postgres');
SELECT t.sound('2024-01-10 02:00Z');
ROLLBACK;

BEGIN; SELECT t.test('refund_in_part_lessens_the_credit');
SELECT t.user(1, 100000), t.subscription(1, 1, 3000, '2024-01-10Z', 'day', 10);
SELECT is(t.bill('2024-01-10 01:00Z'), '1 captured, 0 declined', '30.00 are paid');
SELECT t.says('1000', $$refund(1, 'charge', 1, 0, 1000, 'courtesy', 'r1', '2024-01-10 01:00Z')$$, 'a third is given back', 'postgres');
SELECT t.says('-900', $$change_now(1, 1, 'small', 1, 1000, 'c1', '2024-01-10 01:00Z')$$, 'nine tenths of what is paid beyond the new price', 'postgres');
SELECT t.sound('2024-01-10 02:00Z');
ROLLBACK;

-- Changes whose difference rounds to nothing, whose refund is booked at the same time, and which are dated before an earlier one.
BEGIN; SELECT t.test('credit_holds_after_any_change');
SELECT t.user(1, 100000), t.subscription(1, 1, 1000, '2024-01-10Z', 'week', 1);
SELECT is(t.bill('2024-01-10 01:00Z'), '1 captured, 0 declined', '10.00 are paid');
SELECT t.says('0', $$change_now(1, 1, 'a', 1, 2000, 'k1', '2024-01-16 12:00Z')$$, 'on the last day nothing is left', 'postgres');
SELECT t.says('0', $$change_now(1, 1, 'a', 1, 1500, 'k2', '2024-01-16 12:00Z')$$, 'nor is it for less', 'postgres');
SELECT t.says('0', $$change_now(1, 1, 'a', 1, 500, 'k3', '2024-01-16 13:00Z')$$, 'nor for the least', 'postgres');
SELECT t.says('0', $$change_now(1, 1, 'a', 1, 400, 'k4', '2024-01-16 14:00Z')$$, 'nor for less again', 'postgres');
SELECT t.says('LL002', $$change_now(1, 1, 'a', 1, 1, 'k5', '2024-01-16 11:00Z')$$, 'no change is dated before an earlier one', 'postgres');
SELECT t.sound('2024-01-16 15:00Z');
SELECT t.subscription(2, 1, 10, '2024-01-10Z', 'week', 1);
SELECT is(t.bill('2024-01-16 15:00Z'), '1 captured, 0 declined', '0.10 are paid');
SELECT t.says('0', $$change_now(1, 2, 'a', 1, 11, 'l1', '2024-01-16 15:00Z')$$, 'a cent for a day', 'postgres');
SELECT t.says('0', $$change_now(1, 2, 'a', 1, 3, 'l2', '2024-01-16 15:00Z')$$, 'and less', 'postgres');
SELECT t.says('5', $$refund(1, 'charge', 2, 0, 5, 'r', 'm1', '2024-01-16 16:00Z')$$, 'booked first, and dated later', 'postgres');
SELECT t.says('0', $$change_now(1, 2, 'a', 1, 1, 'm2', '2024-01-16 15:00Z')$$, 'than this change', 'postgres');
SELECT t.sound('2024-01-16 17:00Z');
ROLLBACK;

-- Guarantee: Of two ends of a subscription the earlier one counts, and an end that has not come can be taken back.
BEGIN; SELECT t.test('earlier_end_counts_and_an_end_is_taken_back');
SELECT t.user(1, 100000), t.user(2), t.subscription(1, 1, 900, date_trunc('day', now()), 'day', 10);
SELECT is(t.bill(), '1 captured, 0 declined', 'the first period is paid');
SELECT t.says('190 days', $$cancel_subscription(1, 1, 'period_end', now() + interval '185 days') - date_trunc('day', now())$$, 'in half a year');
SELECT t.says('10 days', $$cancel_subscription(1, 1) - date_trunc('day', now())$$, 'at the end of this period');
SELECT t.says('10 days', $$cancel_subscription(1, 1, 'period_end', now() + interval '185 days') - date_trunc('day', now())$$, 'a later one changes nothing');
SELECT t.says('LL002', 'keep_subscription(2, 1)', 'of another user');
SELECT t.says('true', 'keep_subscription(1, 1)', 'the customer stays');
SELECT t.says('false', 'keep_subscription(1, 1)', 'once more, and nothing changes');
SELECT is(concat_ws(' ', state, cancel_at), 'active', 'there is no end') FROM subscriptions;
SELECT t.sound();
SELECT t.says('true', $$cancel_subscription(1, 1, 'now') IS NOT NULL$$);
SELECT t.says('LL003', 'keep_subscription(1, 1)', 'what is over is not kept');
ROLLBACK;

BEGIN; SELECT t.test('end_that_has_come_is_not_taken_back');
SELECT t.user(1, 100000), t.subscription(1, 1, 900, '2024-01-10Z', 'day', 10);
UPDATE subscriptions SET cancel_at = now() - interval '1 minute';
SELECT t.says('LL003', 'keep_subscription(1, 1)');
ROLLBACK;

BEGIN; SELECT t.test('bill_all_of_what_was_never_declined_has_no_later_time');
SELECT t.user(1, 100000), t.subscription(1, 1, 900, '2024-01-10Z', 'day', 10);
SELECT park_rows('billing', '{1}', 9, 'w', 'why');
SELECT t.says('LL002', $$resume_subscription(1, 1, 'bill_all', now() + interval '10 days')$$, 'it would be due at once');
SELECT t.says('true', $$resume_subscription(1, 1, 'bill_all')$$);
SELECT is(next_due_at, anchor_at, 'due from its start') FROM subscriptions;
ROLLBACK;

BEGIN; SELECT t.test('decision_that_was_overridden_may_be_made_again');
SELECT t.user(1, 100000), t.subscription(1, 1, 100, '2024-01-31Z');
SELECT t.says('true', 'set_price(1, 1, 5, 200) IS NOT NULL AND set_price(1, 1, 3, 150) IS NOT NULL');
SELECT is(amount_minor, 150::bigint, 'the last decision counts') FROM terms_of(1, 5);
SELECT t.says('true', 'set_price(1, 1, 5, 200) IS NOT NULL AND set_price(1, 1, 5, 200) IS NOT NULL', 'made again, and repeated');
SELECT is(concat_ws(' ', (SELECT amount_minor FROM terms_of(1, 4)), (SELECT amount_minor FROM terms_of(1, 5)), count(*)), '150 200 3', 'again it counts')
  FROM subscription_terms;
ROLLBACK;

-- Guarantee: No time zone of a client moves the bounds of the times that it may give.
BEGIN; SELECT t.test('time_zone_of_a_client_moves_no_bound');
SELECT t.user(1, 100);
SET LOCAL timezone = 'A12B-12,J1/0,J332/2';
SELECT t.says('LL002', $$deposit(1, 'USD', 5, 'k', now() - interval '25 hours')$$, 'a day has 24 hours');
SELECT t.says('105', $$deposit(1, 'USD', 5, 'k', now() - interval '23 hours')$$, 'up to that');
ROLLBACK;

-- Guarantee: Nothing old is booked in a transaction whose snapshot may be older than the closing of a month.
BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT t.test('old_entry_needs_a_fresh_snapshot');
SELECT t.user(1, 100), t.sku(65, 'A', 10, 250);
SELECT t.says('LL003', $$deposit(1, 'USD', 5, 'k', '2024-01-10Z')$$, 'a deposit', 'postgres');
SELECT t.says('LL003', $$place_order(1, 'k', t.lines('A1'), '2024-01-10Z')$$, 'an order', 'postgres');
SELECT t.says('105', $$deposit(1, 'USD', 5, 'k')$$, 'what is dated now may be');
ROLLBACK;

-- Guarantee: A time that an application reads after the begin of its transaction is accepted, and no time to come.
BEGIN; SELECT t.test('time_of_the_application_is_accepted');
SELECT t.user(1, 100), pg_sleep(0.05);
SELECT t.says('101', $$deposit(1, 'USD', 1, 'k', clock_timestamp())$$, 'later than now(), which is the begin of the transaction');
SELECT t.says('LL002', $$deposit(1, 'USD', 1, 'l', clock_timestamp() + interval '1 minute')$$, 'a minute to come');
SELECT t.subscription(1, 1, 900, '2024-01-10Z', 'day', 10);
SELECT is(t.bill('2024-01-10 01:00Z'), '0 captured, 1 declined', 'the wallet has not as much');
SELECT t.says('LL002', $$write_off(1, 1, 0, 'gone', 'k', '2024-01-09Z')$$, 'before the period began', 'postgres');
ROLLBACK;

BEGIN; SELECT t.test('pause_ends_within_five_years');
SELECT t.user(1, 100000), t.subscription(1, 1, 900, now() - interval '1 hour');
SELECT t.says('LL002', 'pause_subscription(1, 1, 100, 0)', 'eight years');
SELECT is(count(*), 0::bigint, 'no month was made for it') FROM months WHERE month > now() + interval '1 month';
ROLLBACK;

-- Guarantee: A repair by the owner leaves who made it, when, the rows before and after, and the statement.
BEGIN; SELECT t.test('repair_leaves_its_trace');
SELECT t.user(1, 5000);
SET LOCAL ledgerlock.repair = on;
UPDATE wallet_entries SET idempotency_key = 'card-1 ';
DELETE FROM wallet_entries;
UPDATE users SET currency = 'EUR';
SELECT is(string_agg(concat_ws(' ', repair ->> 'table', repair ->> 'operation', worker, repair -> 'old' ->> 'idempotency_key',
                               repair -> 'new' ->> 'idempotency_key', left(repair ->> 'statement', 6)), ', ' ORDER BY event_id),
          'wallet_entries UPDATE postgres opening card-1  UPDATE, wallet_entries DELETE postgres card-1  DELETE, users UPDATE postgres UPDATE', 'each of the three') FROM events WHERE event = 'repaired';
RESET ledgerlock.repair;
SELECT t.says('23001', 'UPDATE events SET worker = ''nobody''', 'a trace stays', 'postgres');
SELECT t.says('23001', 'DELETE FROM events', 'it is not deleted', 'postgres');
SELECT t.says('23001', 'SET LOCAL ledgerlock.repair = on; TRUNCATE events', 'nor by a repair', 'postgres');
SELECT t.says('23001', 'DELETE FROM lock_token', 'nor is the last token', 'postgres');
SELECT t.says('23001', 'TRUNCATE lock_token', 'nor emptied', 'postgres');
ROLLBACK;

-- Guarantee: A replaced function that decides the periods is found by the calendar, which shares no code with it.
BEGIN; SELECT t.test('replaced_period_start_is_found_by_the_calendar');
SELECT t.user(1, 100000);
CREATE OR REPLACE FUNCTION period_start(p_anchor timestamptz, p_unit text, p_every integer, p_no bigint)
RETURNS timestamptz LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (p_anchor AT TIME ZONE interval '0' + p_no * p_every * CASE p_unit WHEN 'month' THEN interval '1 day' ELSE interval '1 year' END) AT TIME ZONE interval '0';
SELECT t.subscription(1, 1, 100, now() - interval '3 days 1 hour');
SELECT is(t.bill(), '4 captured, 0 declined', 'a month is charged every day');
SELECT is(t.broken(), '{periods_follow_the_calendar}', 'only the calendar sees it');
ROLLBACK;

BEGIN; SELECT t.test('calendar_agrees_with_every_anchor');
SELECT t.user(1);
INSERT INTO subscriptions (user_id, plan, amount_minor, currency, anchor_at, unit, every, next_period_no, next_due_at)
SELECT 1, concat_ws('-', a, unit, every, no), 1, 'USD', a, unit, every, no, period_start(a, unit, every, no)
  FROM unnest('{2024-01-29 10:11:12.000013Z,2024-01-30Z,2024-01-31 23:59:59.999999Z,2024-02-29Z,2023-02-28Z,2000-12-31Z}'::timestamptz[]) AS a,
       unnest('{day,week,month,year}'::text[]) AS unit, unnest('{1,2,7,12}'::int[]) AS every, generate_series(0, 40) AS no;
SELECT is(count(*), 3936::bigint, 'so many begin as they should') FROM subscriptions;
SELECT is('periods_follow_the_calendar' = ANY (t.broken()), false, 'the calendar has nothing against them');
ROLLBACK;

SELECT t.done(91);
