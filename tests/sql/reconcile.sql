-- reconcile: what the gateway lists against payments, class by class; refund_orphan and adopt_orphan.
-- User 1 pays by card 1.00 a month from 1 January. t.listed is what the gateway has of the first period: the payment pi_1.
\set card 'SELECT t.user(1, 500), pay_with(1, ''card'', ''cus_1'', ''pm_1''), t.subscription(1, 1, 100, ''2024-01-01Z''); SELECT t.bill(''2024-01-01 09:00Z'');'
\set captured 'SELECT t.answer(t.send(), ''captured'', ''2024-01-01 10:00Z''); ALTER TABLE payments DISABLE TRIGGER USER; UPDATE payments SET asked_at = now() - interval ''1 hour'';'
SELECT no_plan();

-- An entry of the gateway: of the first attempt for the first period, unless it is told otherwise.
CREATE FUNCTION t.entry(VARIADIC p_other text[] DEFAULT '{}') RETURNS jsonb LANGUAGE sql AS $$
  SELECT jsonb_build_object('kind', 'payment', 'reference', 'pi_1', 'of_reference', '', 'key', payment_key(instance_id, 'charge/1/0', 1),
           'paid', 'charge/1/0', 'customer', 'cus_1', 'there', 'captured', 'there_minor', 100, 'currency', 'USD') || jsonb_object(p_other)
    FROM instance
$$;
-- Classes of these entries, each with kind, reference and what is loose.
CREATE FUNCTION t.classes(VARIADIC p_entries jsonb[] DEFAULT '{}') RETURNS text LANGUAGE sql AS $$
  SELECT string_agg(concat_ws(' ', class, kind, reference, loose_minor), ', ' ORDER BY class, reference)
    FROM reconcile(now() - interval '30 days', now() - interval '5 minutes', to_json(p_entries))
$$;

-- Guarantee: A payment that both sides have alike is matched, by the key of the attempt or by the gateway's reference.
BEGIN; SELECT t.test('both_sides_alike_are_matched');
:card :captured
SELECT is(t.classes(t.entry()), 'matched payment pi_1', 'by its reference');
SELECT is(t.classes(t.entry('key', 'changed by hand')), 'matched payment pi_1', 'without the key');
SELECT is(concat_ws(' ', paid, attempt_no, here, there, currency, here_minor, there_minor, loose_minor), 'charge/1/0 1 captured captured USD 100 100', 'all of it')
  FROM reconcile(now() - interval '30 days', now(), to_json(ARRAY[t.entry()]));
ROLLBACK;

-- Guarantee: An attempt that is not decided here is open, whatever the gateway has of it.
BEGIN; SELECT t.test('undecided_attempt_is_open');
:card
SELECT is(t.classes(), 'open payment', 'planned');
SELECT t.answer(t.send(), 'unknown', '2024-01-01 10:00Z');
UPDATE payments SET reference = NULL;
SELECT is(t.classes(t.entry()), 'open payment pi_1', 'unknown here and captured there');
SELECT is(t.classes(t.entry('there', 'processing')), 'open payment pi_1', 'under way there');
UPDATE payments SET state = 'parked';
SELECT is(t.classes(t.entry()), 'open payment pi_1', 'parked');
ROLLBACK;

-- Guarantee: A captured payment of another amount, currency or state at the gateway differs.
BEGIN; SELECT t.test('other_amount_or_state_differs');
:card :captured
SELECT is(t.classes(t.entry(VARIADIC other)), 'differs payment pi_1', array_to_string(other, ' is '))
  FROM (VALUES ('{there_minor,99}'::text[]), ('{currency,EUR}'), ('{there,canceled}')) AS v (other);
ROLLBACK;

-- Guarantee: A capture of the gateway for an attempt that is void, declined or lost here is an orphan.
BEGIN; SELECT t.test('capture_without_an_attempt_is_an_orphan');
:card
SELECT t.send() AS token \gset
SAVEPOINT sent;
SELECT t.answer(:token, outcome, '2024-01-01 10:00Z') FROM (VALUES ('void')) AS v (outcome);
SELECT is(t.classes(t.entry()), 'orphan payment pi_1 100', 'void here');
SELECT is(t.classes(t.entry('there', 'canceled')), NULL, 'of which nobody has money');
SELECT is(t.classes(t.entry(), t.entry('kind', 'refund', 'reference', 're_1', 'of_reference', 'pi_1', 'there_minor', '40', 'key', '', 'paid', '')),
          'orphan payment pi_1 60, refund_one_sided refund re_1', 'of which a part went back by hand');
ROLLBACK TO sent;
SELECT t.answer(:token, 'declined', '2024-01-01 10:00Z');
SELECT is(t.classes(t.entry()), 'orphan payment pi_1 100', 'declined here');
SELECT is(t.classes(t.entry('key', 'll_other')), 'orphan payment pi_1 100', 'of no attempt, for a period and a customer of ours');
ALTER TABLE payments DISABLE TRIGGER USER;
DELETE FROM payments;
SELECT is(t.classes(t.entry()), 'orphan payment pi_1 100', 'of an attempt whose row is lost');
ROLLBACK;

-- Guarantee: Payments of other applications and of other databases at the same account are foreign.
BEGIN; SELECT t.test('payments_of_others_are_foreign');
:card :captured
SELECT is(t.classes(t.entry(), t.entry(VARIADIC ARRAY['reference', 'pi_2'] || other)), 'foreign payment pi_2, matched payment pi_1', array_to_string(other, ' '))
  FROM (VALUES ('{key,"",paid,""}'::text[]), ('{key,order_7,paid,charge/7/0}'), ('{key,ll_7,customer,cus_other}'), ('{key,ll_7,paid,charge/7/0}')) AS v (other);
SELECT is(t.classes(t.entry(), t.entry('kind', 'refund', 'reference', 're_2', 'of_reference', 'pi_2', 'key', '', 'paid', '')),
          'foreign refund re_2, matched payment pi_1', 'and so are their refunds');
ROLLBACK;

-- Guarantee: A payment that is captured here and absent at the gateway is told, unless the list may be older than the call.
BEGIN; SELECT t.test('capture_that_is_absent_there');
:card :captured
SELECT is(t.classes(), 'here_only payment pi_1', 'absent');
UPDATE payments SET asked_at = now();
SELECT is(t.classes(), 'open payment pi_1', 'asked for a moment ago');
UPDATE payments SET asked_at = now() - interval '40 days', first_sent_at = now() - interval '40 days';
SELECT is(t.classes(), NULL, 'before the time that is compared');
ROLLBACK;

-- Guarantee: A second capture for one charge is a duplicate, whatever the keys were.
BEGIN; SELECT t.test('second_capture_is_a_duplicate');
:card :captured
SELECT is(t.classes(t.entry(), t.entry('reference', 'pi_2')), 'duplicate payment pi_2 100, matched payment pi_1', 'under the same key');
SELECT is(t.classes(t.entry(), t.entry('reference', 'pi_2', 'key', 'x')), 'duplicate payment pi_2 100, matched payment pi_1', 'under another');
SELECT is(t.classes(t.entry('reference', 'pi_2')), 'here_only payment pi_1, orphan payment pi_2 100', 'in the place of ours');
UPDATE payments SET state = 'unknown', reference = NULL;
SELECT is(t.classes(t.entry(), t.entry('reference', 'pi_2')), 'duplicate payment pi_1, duplicate payment pi_2', 'not to be given back while it is open');
ROLLBACK;

-- Guarantee: A refund that one side alone has is told.
BEGIN; SELECT t.test('refund_of_one_side');
:card :captured
SELECT refund(1, 'charge', 1, 0, 40, 'late', 'k');
SELECT is(t.classes(t.entry()), 'matched payment pi_1, open refund', 'planned');
SELECT t.answer(t.send(), 'captured');
UPDATE payments SET asked_at = now() - interval '1 hour', reference = 're_1' WHERE kind = 'refund';
\set back 't.entry(''kind'', ''refund'', ''reference'', ''re_1'', ''of_reference'', ''pi_1'', ''there_minor'', ''40'')'
SELECT is(t.classes(t.entry(), :back), 'matched payment pi_1, matched refund re_1', 'on both');
SELECT is(t.classes(t.entry()), 'matched payment pi_1, refund_one_sided refund re_1', 'here alone');
SELECT is(t.classes(t.entry(), :back || '{"there_minor": 50}'), 'differs refund re_1, matched payment pi_1', 'of another amount');
UPDATE payments SET state = 'void', reference = NULL WHERE kind = 'refund';
SELECT is(t.classes(t.entry(), :back), 'matched payment pi_1, refund_one_sided refund re_1', 'there alone');
SELECT is(t.classes(:back), 'here_only payment pi_1, refund_one_sided refund re_1', 'of a payment that is not in the list');
ROLLBACK;

-- Guarantee: An orphan that was given back is no fault any more, once the gateway has the refund of all of it.
BEGIN; SELECT t.test('orphan_that_was_given_back');
:card
SELECT t.answer(t.send(), 'void', '2024-01-01 10:00Z');
SELECT refund_orphan('pi_1', 'charge/1/0', 100, 'USD') AS key \gset
SELECT is(refund_orphan('pi_1', 'charge/1/0', 100, 'USD'), :'key', 'the same key each time');
SELECT is(string_agg(concat_ws(' ', idempotency_key, amount_minor, reason), ', '), 'pi_1 100 charge/1/0, 100, USD', 'written once') FROM events WHERE event = 'orphan_refunded';
SELECT is(t.classes(t.entry()), 'refund_one_sided payment pi_1 100', 'until the gateway has it');
\set back 't.entry(''kind'', ''refund'', ''reference'', ''re_1'', ''of_reference'', ''pi_1'', ''key'', ''''::text)'
SELECT is(t.classes(t.entry(), :back || '{"there_minor": 40}'), 'refund_one_sided payment pi_1 60', 'all of it');
SELECT is(t.classes(t.entry(), :back), 'returned payment pi_1', 'given back');
SELECT is(t.classes(:back), NULL, 'also when its payment is before the time that is compared');
SELECT is(t.classes(t.entry(), :back, t.entry('reference', 'pi_2')), 'orphan payment pi_2 100, returned payment pi_1', 'and counts as no duplicate');
SELECT t.sound('2024-01-01 10:00Z');
ROLLBACK;

-- Guarantee: An orphan that is adopted is looked up by the job payments, and pays its period once.
BEGIN; SELECT t.test('adopted_orphan_pays_its_period');
:card
SELECT t.answer(t.send(), 'void', '2024-01-01 10:00Z');
SELECT t.says('true', 'adopt_orphan(''pi_1'', ''charge/1/0'', 1)');
SELECT t.says('false', 'adopt_orphan(''pi_1'', ''charge/1/0'', 1)');
SELECT is(concat_ws(' ', p.state, p.calls, payment_looks(p.calls + 1, p.first_sent_at), s.state), 'unknown 3 t paying', 'looked up next') FROM payments AS p, subscriptions AS s;
SELECT is(t.classes(t.entry()), 'open payment pi_1', 'not decided');
SELECT t.says('LL003', 'refund_orphan(''pi_1'', ''charge/1/0'', 100, ''USD'')');
SELECT t.sound('2024-01-01 10:00Z');
SELECT t.answer(t.send(), 'captured', '2024-01-01 11:00Z');
SELECT is(concat_ws(' ', state, next_period_no), 'active 1', 'paid') FROM subscriptions;
SELECT t.says('false', 'adopt_orphan(''pi_1'', ''charge/1/0'', 1)');
SELECT t.sound('2024-01-01 11:00Z');
ROLLBACK;

-- Guarantee: An orphan pays only a period that waits for a payment, and only if its money does not go back.
BEGIN; SELECT t.test('orphan_that_pays_nothing');
:card
SELECT t.send() AS token \gset
SAVEPOINT sent;
SELECT t.says('LL003', 'adopt_orphan(''pi_1'', ''charge/1/0'', 1)');
SELECT t.answer(:token, outcome, '2024-01-01 10:00Z') FROM (VALUES ('declined')) AS v (outcome);
SELECT t.says('LL003', 'adopt_orphan(''pi_2'', ''charge/1/0'', 1)');
ROLLBACK TO sent;
SELECT t.answer(:token, 'captured', '2024-01-01 10:00Z');
SELECT t.says('LL003', 'adopt_orphan(''pi_2'', ''charge/1/0'', 1)');
ROLLBACK TO sent;
SELECT t.answer(:token, 'void', '2024-01-01 10:00Z');
SELECT t.says(answer, call) FROM (VALUES ('LL003', 'adopt_orphan(''pi_1'', ''charge/1/0'', 2)'), ('LL003', 'adopt_orphan(''pi_1'', ''charge/2/0'', 1)'),
  ('LL002', 'adopt_orphan(''pi 1'', ''charge/1/0'', 1)'), ('LL002', 'adopt_orphan(NULL, ''charge/1/0'', 1)'), ('LL002', 'adopt_orphan(''pi_1'', ''payment/1/0'', 1)'),
  ('LL002', 'adopt_orphan(''pi_1'', ''charge/1/0'', 0)')) AS v (answer, call);
SAVEPOINT void;
SELECT refund_orphan('pi_1', 'charge/1/0', 100, 'USD');
SELECT t.says('LL003', 'adopt_orphan(''pi_1'', ''charge/1/0'', 1)');
ROLLBACK TO void;
SELECT t.bill('2024-01-01 12:00Z'); -- plans another attempt
SELECT t.says('LL003', 'adopt_orphan(''pi_1'', ''charge/1/0'', 1)');
ROLLBACK;

-- Guarantee: A payment that is captured here is not given back as an orphan.
BEGIN; SELECT t.test('captured_payment_is_no_orphan');
:card :captured
SELECT t.says(answer, call) FROM (VALUES ('LL003', 'refund_orphan(''pi_1'', ''charge/1/0'', 100, ''USD'')'), ('LL002', 'refund_orphan(''pi 2'', ''c'', 100, ''USD'')'),
  ('LL002', 'refund_orphan(NULL, ''c'', 100, ''USD'')'), ('LL002', 'refund_orphan(''pi_2'', ''c'', -1, ''USD'')'), ('true', 'refund_orphan(''pi_2'', ''c'', 1, ''USD'') LIKE ''ll_%''')) AS v (answer, call);
ROLLBACK;

-- Guarantee: Thousands of payments are compared with as many entries.
BEGIN; SELECT t.test('many_entries_are_compared');
SELECT t.user(1), pay_with(1, 'card', 'cus_1', 'pm_1');
INSERT INTO payments (kind, source, leg, attempt_no, user_id, source_at, amount_minor, currency, customer, method, state, calls, first_sent_at, asked_at,
                      due_at, reference, planned_fence, fence, worker, at)
SELECT 'charge', n, 0, 1, 1, now(), 100, 'USD', 'cus_1', 'pm_1', 'captured', 1, now(), now() - interval '1 hour', now(), 'pi_' || n, 1, 1, 'w', now()
  FROM generate_series(1, 20000) AS n;
SELECT is(string_agg(concat_ws(' ', class, n), ', ' ORDER BY class), 'foreign 10000, here_only 10000, matched 10000', 'half of them')
  FROM (SELECT class, count(*) AS n
          FROM reconcile(now() - interval '30 days', now(),
                         (SELECT json_agg(t.entry('reference', 'pi_' || n, 'paid', 'charge/' || n, 'key', 'll_' || n, 'customer', 'cus_' || n)) FROM generate_series(10001, 30000) AS n))
         GROUP BY class) AS c;
ROLLBACK;

SELECT t.done(68);
