-- Periods paid by card, straight on apply_charges, send_payments and settle_payments: what is planned, what each answer of the gateway does,
-- and what keeps a second attempt from taking money.
-- User 1 has 5.00 in the wallet and pays by card: 1.00 a month from 1 January.
\set card 'SELECT t.user(1, 500), pay_with(1, ''card'', ''cus_1'', ''pm_1''), t.subscription(1, 1, 100, ''2024-01-01Z''); SELECT t.bill(''2024-01-01 09:00Z'');'
\set stands '(SELECT concat_ws('' '', state, next_period_no, retries) FROM subscriptions WHERE subscription_id = 1)'
\set periods '(SELECT string_agg(concat_ws('' '', period_no, state, tries, amount_minor), '', '' ORDER BY period_no) FROM charges WHERE subscription_id = 1)'
\set attempts '(SELECT string_agg(concat_ws('' '', leg, attempt_no, state, calls), '', '' ORDER BY payment_id) FROM payments)'
\set wallet '(SELECT balance_minor FROM users WHERE user_id = 1)'
SELECT no_plan();

-- ---- who pays by card ----

-- Guarantee: A user pays by card by the gateway's own ids; the number of a card is refused.
BEGIN; SELECT t.test('card_is_named_by_ids_of_the_gateway');
SELECT t.user(1);
SELECT t.says(answer, call) FROM (VALUES
  ('LL002', 'pay_with(1, ''cash'')'), ('LL002', 'pay_with(1, NULL)'), ('LL002', 'pay_with(1, ''card'')'),
  ('LL002', 'pay_with(1, ''card'', ''cus_1'')'), ('LL002', 'pay_with(1, ''wallet'', ''cus_1'', ''pm_1'')'),
  ('LL002', 'pay_with(1, ''card'', ''cus_1'', ''4242424242424242'')'), ('LL002', 'pay_with(1, ''card'', ''cus 1'', ''pm_1'')'),
  ('LL002', 'pay_with(2, ''card'', ''cus_1'', ''pm_1'')'),
  ('true', 'pay_with(1, ''card'', ''cus_1'', ''pm_1'')'), ('false', 'pay_with(1, ''card'', ''cus_1'', ''pm_1'')'),
  ('true', 'pay_with(1, ''card'', ''cus_1'', ''pm_2'')'), ('true', 'pay_with(1, ''wallet'')'), ('false', 'pay_with(1, ''wallet'')')) AS said (answer, call);
SELECT is(count(*), 3::bigint, 'an event each') FROM events WHERE event = 'pays_with';
SELECT t.sound();
ROLLBACK;

-- ---- plan ----

-- Guarantee: A period that a card is to pay is planned in the transaction that takes it, and moves no money.
BEGIN; SELECT t.test('period_by_card_is_planned_once');
:card
SELECT is(:attempts, '0 1 planned 0', 'planned');
SELECT is(concat_ws(' ', amount_minor, currency, customer, method), '100 USD cus_1 pm_1', 'with all that the request says') FROM payments;
SELECT is(concat_ws(' ', :stands, :periods, :wallet), 'paying 0 0 500', 'nothing is charged yet');
SELECT is(t.bill('2024-02-15Z'), '0 captured, 0 declined', 'and the next period waits for it');
SELECT is(:attempts, '0 1 planned 0', 'planned once');
SELECT t.sound('2024-02-15Z');
ROLLBACK;

-- Guarantee: Users who pay from the wallet and by card are billed in one batch.
BEGIN; SELECT t.test('wallet_and_card_in_one_batch');
SELECT t.user(1, 500), t.user(2, 500), t.user(3, 50), pay_with(2, 'card', 'cus_2', 'pm_2');
SELECT t.subscription(u, u, 100, '2024-01-01Z') FROM generate_series(1, 3) AS u;
SELECT is(t.bill('2024-01-01Z'), '1 captured, 1 declined', 'one of each from the wallet');
SELECT is(string_agg(user_id || ' ' || state, ', '), '2 planned', 'one by card') FROM payments;
SELECT t.sound('2024-01-01Z');
ROLLBACK;

-- Guarantee: A period that costs nothing asks no card.
BEGIN; SELECT t.test('free_period_asks_no_card');
:card
SELECT t.subscription(2, 1, 0, '2024-01-01Z');
SELECT is(t.bill('2024-01-01 09:00Z'), '1 captured, 0 declined', 'it is captured at once');
SELECT is(:attempts, '0 1 planned 0', 'and not asked for');
ROLLBACK;

-- A period whose month has no partition is not planned: what the gateway captures could not be written down.
BEGIN; SELECT t.test('month_is_there_before_the_card_is_asked');
SELECT t.user(1), pay_with(1, 'card', 'cus_1', 'pm_1'), t.subscription(1, 1, 100, '2022-01-01Z');
SELECT claim_users(7, '{1}');
SELECT throws_ok($$SELECT apply_charges(7, 'w', '2022-01-01Z', ARRAY[1]::bigint[], ARRAY(SELECT ctid FROM subscriptions), ARRAY[1]::bigint[], 1000)$$, '23514');
ROLLBACK;

-- ---- what the gateway answers ----

-- Guarantee: A captured payment is its period's charge, and no wallet moves.
BEGIN; SELECT t.test('captured_payment_is_the_charge');
:card
SELECT is(t.answer(t.send(), 'captured', '2024-01-01 10:00Z'), '1 settled, 1 captured, 0 declined', 'captured');
SELECT is(concat_ws('; ', :stands, :periods, :attempts, :wallet), 'active 1 0; 0 paid 1 100; 0 1 captured 1; 500', 'the period is paid');
SELECT is(concat_ws(' ', source, debit, credit, amount_minor), '1 gateway subscription_revenue 100', 'by the gateway') FROM ledger WHERE kind = 'card';
SELECT is(report('2024-01-02Z') -> 1 ->> 'by_card', '100', 'the report has it');
SELECT t.sound('2024-01-01 10:00Z');
SELECT t.bill('2024-02-01Z'), t.answer(t.send('2024-02-01Z'), 'captured', '2024-02-01Z');
SELECT is(:periods, '0 paid 1 100, 1 paid 1 100', 'so is the next');
SELECT is(string_agg(decision || ' ' || period_no, ', '), 'charge.captured 0', 'the feed has the first') FROM decisions_since() WHERE decision LIKE 'charge%';
SELECT t.sound('2024-02-01Z');
ROLLBACK;

-- Guarantee: A declined card follows the schedule of retries, each try a new attempt with a number of its own.
BEGIN; SELECT t.test('declined_card_follows_the_schedule');
INSERT INTO retry_schedules (pauses_s) VALUES ('{3600}');
:card
SELECT is(t.answer(t.send(), 'declined', '2024-01-01 09:00Z', 'insufficient_funds'), '1 settled, 0 captured, 1 declined', 'declined');
SELECT is(concat_ws('; ', :stands, :periods, :attempts), 'past_due 0 1; 0 declined 1 100; 0 1 declined 1', 'past due');
UPDATE feed_base SET base = base + 1;
SELECT is(string_agg(reason, ','), 'insufficient_funds', 'the feed has the code') FROM decisions_since() WHERE decision = 'charge.declined';
SELECT t.sound('2024-01-01 09:30Z');
SELECT t.bill('2024-01-01 09:59Z');
SELECT is(:attempts, '0 1 declined 1', 'no try before its time');
SELECT t.bill('2024-01-01 10:00Z');
SELECT is(concat_ws('; ', :stands, :attempts), 'paying 0 1; 0 1 declined 1, 0 2 planned 0', 'the second attempt');
SELECT t.sound('2024-01-01 10:00Z');
SELECT t.answer(t.send(), 'declined', '2024-01-01 10:00Z');
SELECT is(concat_ws('; ', :stands, :periods), 'unpaid 0 2; 0 declined 2 100', 'after the last one it is unpaid');
SELECT t.sound('2024-01-01 10:00Z');
SELECT resume_subscription(1, 1, 'bill_all', now()), t.bill();
SELECT t.answer(t.send(), 'captured');
SELECT is(:periods, '0 paid 3 100', 'a later attempt pays it');
ROLLBACK;

-- Guarantee: A card that is declined for good is not tried again: the subscription is unpaid at once, until a person resumes it.
BEGIN; SELECT t.test('hard_decline_is_not_tried_again');
:card
SELECT t.answer(t.send(), 'declined', '2024-01-01 09:00Z', 'stolen_card');
SELECT is(concat_ws('; ', :stands, :periods), 'unpaid 0 1; 0 declined 1 100', 'no pause of the schedule');
UPDATE feed_base SET base = base + 1;
SELECT is(string_agg(concat_ws(' ', decision, reason, next_try_at), ','), 'charge.declined stolen_card', 'the feed says so') FROM decisions_since() WHERE decision = 'charge.declined';
SELECT is(t.bill('2024-03-01Z'), '0 captured, 0 declined', 'and no try follows');
SELECT t.sound('2024-03-01Z');
SELECT pay_with(1, 'card', 'cus_1', 'pm_2'), resume_subscription(1, 1, 'bill_all', now()), t.bill();
SELECT t.answer(t.send(), 'captured');
SELECT is(:periods, '0 paid 2 100', 'another card pays it');
ROLLBACK;

-- Guarantee: Without an answer that decides, a payment stays unknown, and no other attempt is made.
BEGIN; SELECT t.test('unknown_stays_unknown');
:card
SELECT is(t.answer(t.send(), 'unknown', '2024-01-01 09:00Z', 'HTTP 500'), '1 settled, 0 captured, 0 declined', 'it is written down');
SELECT is(concat_ws('; ', :stands, :attempts), 'paying 0 0; 0 1 unknown 1', 'and unknown');
SELECT t.bill('2024-06-01Z'), t.answer(t.send(), 'unknown'), t.answer(t.send(), 'later');
SELECT is(:attempts, '0 1 unknown 3', 'the same attempt, again and again');
SELECT alike(detail, '%attempt 1 of period 0 is unknown%', 'explain says so') FROM waits_of_subscription(1);
SELECT t.answer(t.send(), 'captured', '2024-01-01 09:00Z');
SELECT is(concat_ws('; ', :stands, :attempts), 'active 1 0; 0 1 captured 4', 'until an answer decides');
ROLLBACK;

-- Guarantee: A payment of which the gateway says that it would answer the same again is looked up by the next call.
BEGIN; SELECT t.test('stored_answer_is_looked_up');
:card
SELECT t.answer(t.send(), 'stored', '2024-01-01 09:00Z', 'HTTP 500');
SELECT is(:attempts, '0 1 unknown 3', 'as after three calls');
SELECT ok(payment_looks(calls + 1, first_sent_at), 'the next one looks it up') FROM payments;
ROLLBACK;

-- Guarantee: A payment that is unknown for longer than gateways are sure to remember its key is looked up, and not asked for.
BEGIN; SELECT t.test('old_unknown_is_looked_up');
:card
SELECT t.answer(t.send(), 'unknown');
SELECT ok(NOT payment_looks(calls + 1, first_sent_at), 'young: the same request again') FROM payments;
UPDATE payments SET first_sent_at = now() - interval '21 hours', asked_at = now() - interval '21 hours';
CREATE TEMPORARY TABLE before ON COMMIT DROP AS SELECT asked_at FROM payments;
SELECT t.send();
SELECT is(concat_ws(' ', state, calls, payment_looks(calls, first_sent_at), asked_at = (SELECT asked_at FROM before)), 'sent 2 t t', 'old: its second call looks it up')
  FROM payments;
ROLLBACK;

-- A call that was not carried out leaves the attempt as it was planned.
BEGIN; SELECT t.test('later_is_planned_again');
:card
SELECT t.answer(t.send(), 'later', now(), 'HTTP 429');
SELECT is(:attempts, '0 1 planned 0', 'as if it had not been sent');
ROLLBACK;

-- Guarantee: A period is due again where the gateway has nothing of its payment, and the next attempt has another number.
BEGIN; SELECT t.test('void_attempt_is_followed_by_another');
:card
SELECT t.answer(t.send(), 'void', '2024-01-01 09:00Z');
SELECT is(concat_ws('; ', :stands, :attempts), 'active 0 0; 0 1 void 1', 'due again');
SELECT t.sound('2024-01-01 09:00Z');
SELECT t.bill('2024-01-01 09:00Z');
SELECT is(:attempts, '0 1 void 1, 0 2 planned 0', 'a second attempt');
SELECT pay_with(1, 'wallet'), t.answer(t.send(), 'void', '2024-01-01 09:00Z'), t.bill('2024-01-01 09:00Z');
SELECT is(:periods, '0 captured 1 100', 'or the wallet, if that is to pay by then');
SELECT t.sound('2024-01-01 09:00Z');
ROLLBACK;

-- Guarantee: A request that the gateway refuses is parked, and a person gives it back.
BEGIN; SELECT t.test('refused_request_is_parked');
:card
SELECT t.answer(t.send(), 'refused', '2024-01-01 09:00Z', 'HTTP 400 parameter_missing');
SELECT is(concat_ws('; ', :stands, :attempts), 'paying 0 0; 0 1 parked 1', 'parked');
SELECT is(t.broken('2024-01-01 09:00Z'), '{nothing_parked}', 'the audit tells');
SELECT is(array_agg(id), '{1}', 'given back') FROM release_rows('payments', '{1}') AS id;
SELECT is(:attempts, '0 1 unknown 3', 'to be looked up');
ROLLBACK;

-- ---- what keeps a second capture away ----

-- Guarantee: Under the key of an attempt no other text is sent than the first time, by whatever version or form of the gateway: the
-- attempt is parked, and what a person gives back is looked up.
BEGIN; SELECT t.test('other_text_is_never_sent_under_a_key');
:card
SELECT t.answer(t.send(), 'unknown', '2024-01-01 09:00Z'), t.answer(t.send(), 'unknown', '2024-01-01 09:00Z');
SELECT is(:attempts, '0 1 unknown 2', 'the same text is sent again');
SELECT t.send(now(), 'another form');
SELECT is(:attempts, '0 1 parked 2', 'another one is not');
SELECT alike(reason, '%another text%gateway.kind%release%', 'and what to do is said') FROM payments;
SELECT is(count(*), 1::bigint, 'also in the log of incidents') FROM lock_incidents WHERE resource = 'payment:1';
SELECT count(*) FROM release_rows('payments', '{1}');
SELECT t.send(now(), 'another form');
SELECT is(state || ' ' || payment_looks(calls, first_sent_at), 'sent true', 'given back, it is looked up') FROM payments;
ROLLBACK;

-- Guarantee: A changed row of an attempt is not asked for under its key.
BEGIN; SELECT t.test('changed_attempt_is_not_sent_again');
:card
SELECT t.answer(t.send(), 'unknown', '2024-01-01 09:00Z');
ALTER TABLE payments DISABLE TRIGGER payments_stay_as_planned;
UPDATE payments SET method = 'pm_2';
SELECT t.send();
SELECT is(:attempts, '0 1 parked 1', 'parked');
ROLLBACK;

-- Guarantee: A second attempt that may hold money for one period cannot be written.
BEGIN; SELECT t.test('second_attempt_is_refused');
:card
\set again 'INSERT INTO payments (kind, source, leg, attempt_no, user_id, source_at, amount_minor, currency, customer, method, due_at, planned_fence, fence, worker, at) SELECT kind, source, leg, 2, user_id, source_at, amount_minor, currency, customer, method, due_at, 1, 1, worker, at FROM payments'
SELECT throws_ok(:'again', '23505');
SELECT t.answer(t.send(), 'captured', '2024-01-01 09:00Z');
SELECT throws_ok(:'again', '23505');
SELECT throws_ok('UPDATE payments SET state = ''declined''', '23001');
SELECT throws_ok('UPDATE payments SET amount_minor = 1', '23001');
SELECT throws_ok('DELETE FROM payments', '23001');
ROLLBACK;

-- Guarantee: An answer to a call that another batch has made again changes nothing.
BEGIN; SELECT t.test('answer_of_an_older_call_changes_nothing');
:card
SELECT t.send() AS older \gset
UPDATE payments SET due_at = now();
SELECT t.send() AS newer \gset
SELECT is(:attempts, '0 1 sent 2', 'sent again when no answer came in time');
SELECT is(t.answer(:older, 'declined', '2024-01-01 09:00Z'), '1 settled, 0 captured, 0 declined', 'another batch has it');
SELECT is(:attempts, '0 1 sent 2', 'nothing is changed');
SELECT is(t.answer(:newer, 'captured', '2024-01-01 09:00Z'), '1 settled, 1 captured, 0 declined', 'this one counts');
SELECT is(:periods, '0 paid 1 100', 'once');
ROLLBACK;

-- Guarantee: An answer that is written down a second time, after a COMMIT without an answer, changes nothing.
BEGIN; SELECT t.test('settled_twice_is_settled_once');
:card
SELECT t.send() AS token \gset
SELECT t.answer(:token, 'captured', '2024-01-01 09:00Z');
SELECT is(t.answer(:token, 'captured', '2024-01-01 09:00Z'), '1 settled, 0 captured, 0 declined', 'known as settled');
SELECT is(:periods, '0 paid 1 100', 'once');
SELECT t.sound('2024-01-01 09:00Z');
ROLLBACK;

-- Guarantee: An answer that was written down already is passed over beside one that was not.
BEGIN; SELECT t.test('settled_one_beside_a_new_one');
:card
SELECT t.user(2), pay_with(2, 'card', 'cus_2', 'pm_2'), t.subscription(2, 2, 100, '2024-01-01Z');
SELECT t.bill('2024-01-01 09:00Z'), t.send() AS token \gset
SELECT is(captured, 1::bigint, 'the first is captured')
  FROM settle_payments('w', '2024-01-01 09:00Z', ARRAY(SELECT payment_id FROM payments WHERE user_id = 1), ARRAY[:token], '{captured}', '{pi_1}', '{NULL}', '{0}');
UPDATE feed_base SET base = base + 1;
SELECT is(t.answer(:token, 'captured', '2024-01-01 09:00Z'), '2 settled, 1 captured, 0 declined', 'then the other');
SELECT is(:periods, '0 paid 1 100', 'the first once');
SELECT is(count(*), 2::bigint, 'a charge each') FROM charges;
SELECT t.sound('2024-01-01 09:00Z');
ROLLBACK;

-- Guarantee: An answer tells of how many periods billing may go on at once.
BEGIN; SELECT t.test('answer_tells_how_many_are_due');
:card
SELECT t.send() AS token \gset
SELECT is(due_again, 0::bigint, 'the next is not due') FROM settle_payments('w', '2024-01-31 23:00Z', '{1}', ARRAY[:token], '{captured}', '{pi_1}', '{NULL}', '{0}');
SELECT t.bill('2024-02-01Z'), t.send() AS token \gset
SELECT is(due_again, 1::bigint, 'the same again') FROM settle_payments('w', '2024-02-01Z', '{2}', ARRAY[:token], '{void}', '{NULL}', '{NULL}', '{0}');
SELECT t.bill('2024-02-01Z'), t.send() AS token \gset
SELECT is(due_again, 1::bigint, 'the next is due') FROM settle_payments('w', '2024-03-01Z', '{3}', ARRAY[:token], '{captured}', '{pi_3}', '{NULL}', '{0}');
ROLLBACK;

-- Guarantee: A batch whose users carry a newer fence sends nothing and settles nothing.
BEGIN; SELECT t.test('newer_fence_keeps_an_older_batch_out');
:card
SELECT t.send() AS token \gset
UPDATE users SET fence = :token + 1;
SELECT is(t.answer(:token, 'captured', '2024-01-01 09:00Z'), '0 settled, 0 captured, 0 declined', 'not settled');
UPDATE payments SET due_at = now();
UPDATE users SET fence = 999999;
SELECT is(sent, 0::bigint, 'nor sent') FROM send_payments(:token + 10, 'w', NULL, '{1}', 1000, 'form');
ROLLBACK;

-- ---- what clients do meanwhile ----

-- Guarantee: A subscription whose card is asked ends at once only if nobody was asked yet.
BEGIN; SELECT t.test('end_while_a_card_is_asked');
:card
SAVEPOINT planned;
SELECT isnt(cancel_subscription(1, 1, 'now'), NULL, 'planned: it ends');
SELECT is(concat_ws('; ', :stands, :attempts), 'cancelled 0 0; 0 1 void 0', 'and is not asked for');
SELECT t.sound('2024-01-01 09:00Z');
ROLLBACK TO planned;
SELECT t.send() AS token \gset
SELECT t.says('LL003', 'cancel_subscription(1, 1, ''now'')', 'sent: it does not');
SELECT t.says('LL003', 'pause_subscription(1, 1, 1, 0)', 'nor is it paused');
SELECT isnt(cancel_subscription(1, 1, 'period_end'), NULL, 'it ends with its period');
SELECT t.sound('2024-01-01 09:00Z');
SELECT t.answer(:token, 'captured', '2024-01-01 09:00Z');
SELECT is(:periods, '0 paid 1 100', 'which is paid');
SELECT t.sound('2024-01-01 09:00Z');
ROLLBACK;

-- Guarantee: Terms of a period whose card is asked stay; new ones count from the next period on.
BEGIN; SELECT t.test('terms_while_a_card_is_asked');
:card
SELECT t.says('LL002', 'set_terms(1, 1, 0, NULL, NULL, 300)', 'not of this period');
SELECT set_terms(1, 1, NULL, NULL, NULL, 300), t.answer(t.send(), 'captured', '2024-01-01 09:00Z'), t.bill('2024-02-01Z');
SELECT is(amount_minor, 300::bigint, 'of the next') FROM payments WHERE leg = 1;
SELECT t.sound('2024-02-01Z');
ROLLBACK;

SELECT t.done(110);
