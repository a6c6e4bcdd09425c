-- Subscriptions as people change them, and the charges that follow: resumes, deposits for a debt, terms, free periods and pauses.
-- User 1 has 0.99, and a subscription of 1.00 a month, declined at 09:00 on 1 January; with these pauses until later tries.
\set declined 'SELECT t.user(1, 99), t.subscription(1, 1, 100, ''2024-01-01 08:00Z''); SELECT t.bill(''2024-01-01 09:00Z'');'
\set schedule 'INSERT INTO retry_schedules (pauses_s) VALUES'
-- The same, given up an hour later; in June the wallet has 10.00.
\set unpaid 'INSERT INTO retry_schedules (pauses_s) VALUES (''{3600}''); SELECT t.user(1, 99), t.subscription(1, 1, 100, ''2024-01-01 08:00Z''); SELECT t.bill(''2024-01-01 09:00Z''), t.bill(''2024-01-01 10:00Z''), deposit(1, ''USD'', 901, ''later'', ''2024-06-14Z'');'
\set stands '(SELECT concat_ws('' '', state, next_period_no, to_char(next_due_at, ''MM-DD HH24:MI''), retries) FROM subscriptions WHERE subscription_id = 1)'
\set periods '(SELECT string_agg(concat_ws('' '', period_no, state, tries, amount_minor), '', '' ORDER BY period_no) FROM charges WHERE subscription_id = 1)'
\set wallet '(SELECT balance_minor FROM users WHERE user_id = 1)'
SELECT no_plan();

-- ---- resume ----

-- Guarantee: A subscription that is resumed with forgive is charged for the period that is running, and each period that was over has a row that
-- says it was waived.
BEGIN; SELECT t.test('resume_that_forgives_waives_what_is_over');
:unpaid
SELECT is(resume_subscription(1, 1, p_at => '2024-06-15Z'), true, 'resumed');
SELECT is(resume_subscription(1, 1, p_at => '2024-06-15Z'), false, 'once');
SELECT is(:stands, 'active 5 06-01 08:00 0', 'the period that is running comes next');
SELECT is(t.bill('2024-06-15Z'), '1 captured, 0 declined', 'it is charged');
SELECT is(:periods, '0 waived 2 100, 1 waived 0 100, 2 waived 0 100, 3 waived 0 100, 4 waived 0 100, 5 captured 1 100', 'the others are waived');
SELECT is(:wallet, 900::bigint, 'one was paid');
SELECT is(count(*), 1::bigint, 'an event says so once') FROM events WHERE event = 'waived';
SELECT t.sound('2024-06-15Z');
ROLLBACK;

BEGIN; SELECT t.test('resume_that_forgives_tries_the_running_period_again');
:unpaid
SELECT is(resume_subscription(1, 1, p_at => '2024-01-20Z'), true, 'resumed in the period that was declined');
SELECT is(:stands, 'past_due 0 01-20 00:00 2', 'that is tried again');
SELECT is(t.bill('2024-01-20Z'), '1 captured, 0 declined', 'and paid');
SELECT is(:periods, '0 captured 3 100', 'at the third try');
ROLLBACK;

BEGIN; SELECT t.test('resume_that_forgives_at_a_boundary_charges_from_it');
:unpaid
SELECT is(resume_subscription(1, 1, 'forgive', '2024-02-01 08:00Z'), true, 'resumed at the end of the period');
SELECT is(t.bill('2024-02-01 08:00Z'), '1 captured, 0 declined', 'the next one is charged');
SELECT is(:periods, '0 waived 2 100, 1 captured 1 100', 'the period that ends at that moment is over');
ROLLBACK;

BEGIN; SELECT t.test('resume_that_forgives_waives_nothing_behind_the_cancellation');
:unpaid
SELECT cancel_subscription(1, 1, p_at => '2024-02-15Z');
SELECT is(resume_subscription(1, 1, p_at => '2024-06-15Z'), true, 'resumed');
SELECT is(t.bill('2024-06-15Z'), '0 captured, 0 declined', 'nothing is charged');
SELECT is(:stands, 'cancelled 2 03-01 08:00 0', 'it is over');
SELECT is(:periods, '0 waived 2 100, 1 waived 0 100', 'what lies before the end is waived');
SELECT t.sound('2024-06-15Z');
ROLLBACK;

-- Guarantee: A subscription that is resumed with bill_all is charged for every period that was left open.
BEGIN; SELECT t.test('resume_that_bills_all_charges_what_is_over');
:unpaid
SELECT is(resume_subscription(1, 1, 'bill_all', '2024-03-15Z'), true, 'resumed');
SELECT is(t.bill('2024-03-15Z'), '3 captured, 0 declined', 'all are charged');
SELECT is(:periods, '0 captured 3 100, 1 captured 1 100, 2 captured 1 100', 'beginning with one more try of the first');
SELECT t.sound('2024-03-15Z');
ROLLBACK;

-- ---- deposits for a debt ----

-- Guarantee: A deposit makes a past-due subscription that it can pay due at once, and that try is the next one of the schedule.
BEGIN; SELECT t.test('deposit_makes_a_past_due_subscription_due');
:schedule ('{86400,86400}');
:declined
SELECT deposit(1, 'USD', 1, 'little', '2024-01-01 12:00Z');
SELECT is(:stands, 'past_due 0 01-01 12:00 1', 'due at the time of the deposit');
SELECT is(t.bill('2024-01-01 12:00Z'), '1 captured, 0 declined', 'tried');
SELECT is(:periods, '0 captured 2 100', 'and paid');
SELECT t.sound('2024-01-01 12:00Z');
ROLLBACK;

BEGIN; SELECT t.test('deposit_that_is_too_small_uses_up_no_try');
:schedule ('{86400}');
:declined
SELECT t.subscription(2, 1, 98, '2024-01-01 08:00Z');
SELECT is(t.bill('2024-01-01 09:30Z'), '1 captured, 0 declined', 'another one takes the rest');
SELECT deposit(1, 'USD', 1, 'one', '2024-01-01 12:00Z');
SELECT is(:stands, 'past_due 0 01-02 09:00 1', 'the next try stays where it was');
SELECT deposit(1, 'USD', 98, 'rest', '2024-01-01 13:00Z');
SELECT is(:stands, 'past_due 0 01-01 13:00 1', 'now there is enough');
ROLLBACK;

BEGIN; SELECT t.test('deposit_for_one_of_two_makes_one_of_two_due');
:schedule ('{86400}');
:declined
SELECT t.subscription(2, 1, 110, '2024-01-01 08:00Z');
SELECT is(t.bill('2024-01-01 09:30Z'), '0 captured, 1 declined', 'neither can be paid');
SELECT deposit(1, 'USD', 100, 'for one', '2024-01-01 12:00Z');
SELECT is(count(*), 1::bigint, 'one is due') FROM subscriptions WHERE next_due_at = '2024-01-01 12:00Z';
SELECT is(t.bill('2024-01-01 12:00Z'), '1 captured, 0 declined', 'and paid');
SELECT is(sum(tries), 1::bigint, 'the other one has used up no try') FROM charges WHERE subscription_id = 2;
ROLLBACK;

BEGIN; SELECT t.test('deposit_leaves_a_parked_subscription_alone');
:schedule ('{86400}');
:declined
SELECT park_rows('billing', '{1}', 9, 'w', 'why'), deposit(1, 'USD', 1000, 'all', '2024-01-01 12:00Z');
SELECT is(:stands, 'parked 0 01-02 09:00 1', 'it stays parked');
SELECT is(t.bill('2024-06-01Z'), '0 captured, 0 declined', 'and is not tried');
ROLLBACK;

-- Guarantee: When the schedule is used up nothing is tried until somebody resumes the subscription, whatever is deposited.
BEGIN; SELECT t.test('deposit_for_an_unpaid_subscription_makes_nothing_due');
:unpaid
SELECT is(:wallet, 1000::bigint, 'there is money');
SELECT is(t.bill('2024-06-20Z'), '0 captured, 0 declined', 'nothing is tried');
SELECT is(:stands, 'unpaid 0 01-01 10:00 2', 'it stays unpaid');
SELECT is(:periods, '0 declined 2 100', 'and declined');
SELECT t.sound('2024-06-20Z');
ROLLBACK;

-- ---- terms ----

-- Guarantee: Each period is charged by the terms of that period, also when a pool catches up later.
BEGIN; SELECT t.test('each_period_is_charged_by_its_own_terms');
SELECT t.user(1, 10000), t.subscription(1, 1, 100, '2024-01-31Z'), t.subscription(2, 1, 7, '2024-01-31Z');
SELECT set_terms(1, 1, 2, 'trio', 3, 80), set_terms(1, 1, 2, 'duo', 2, 80), set_terms(1, 1, 4, 'solo', 1, 90);
SELECT is(t.bill('2024-06-15Z'), '10 captured, 0 declined', 'five of each');
SELECT is(:periods, '0 captured 1 100, 1 captured 1 100, 2 captured 1 160, 3 captured 1 160, 4 captured 1 90', 'each costs what its terms say');
SELECT is(:wallet, 10000 - 610 - 35::bigint, 'and was paid');
SELECT t.sound('2024-06-15Z');
ROLLBACK;

-- Guarantee: A free period is captured, and no money moves.
BEGIN; SELECT t.test('trial_is_captured_for_nothing_and_then_paid');
SELECT t.user(1, 100), subscribe(1, 'pro', 60, 'USD', 'month', 1, '2024-01-31Z', 2, 'k'), subscribe(1, 'free', 0, 'USD', 'month', 1, '2024-01-31Z', 0, 'l');
SELECT is(t.bill('2024-03-15Z'), '4 captured, 0 declined', 'two of each');
SELECT is(count(*), 1::bigint, 'nothing moved but the deposit') FROM ledger;
SELECT is(t.bill('2024-05-15Z'), '3 captured, 1 declined', 'then a period costs');
SELECT is(:periods, '0 captured 1 0, 1 captured 1 0, 2 captured 1 60, 3 declined 1 60', 'behind two free ones');
SELECT is(:wallet, 40::bigint, 'one was paid');
SELECT t.sound('2024-05-15Z');
ROLLBACK;

-- ---- pauses ----

-- Guarantee: A pause skips whole periods, each has a row that says so, and a pool goes on behind it.
BEGIN; SELECT t.test('paused_periods_are_not_charged');
SELECT t.user(1, 10000), t.subscription(1, 1, 100, '2024-01-31Z');
SELECT is(t.bill('2024-02-01Z'), '1 captured, 0 declined', 'the first is charged');
SELECT is(pause_subscription(1, 1, 2, 1), '2024-04-30Z', 'two are skipped');
SELECT is(t.bill('2024-05-15Z'), '1 captured, 0 declined', 'and the fourth is charged');
SELECT is(:periods, '0 captured 1 100, 1 skipped 0 100, 2 skipped 0 100, 3 captured 1 100', 'each has its row');
SELECT is(:wallet, 9800::bigint, 'two were paid');
SELECT t.sound('2024-05-15Z');
ROLLBACK;

SELECT t.done(58);
