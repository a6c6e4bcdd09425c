-- explain, status, report and doctor, which the program prints.
-- User 1 pays the first of two periods of ten days.
\set customer 'SELECT t.user(1, 150), t.subscription(1, 1, 100, now() - interval ''15 days'', ''day'', 10), t.bill();'
SELECT no_plan();

CREATE FUNCTION pg_temp.life(p_kind text, p_id bigint) RETURNS text LANGUAGE sql AS $$
  SELECT string_agg(l ->> 'what', ', ') FROM jsonb_array_elements(explain(p_kind, p_id) -> 'life') AS l $$;
CREATE FUNCTION pg_temp.waits(p_kind text, p_id bigint) RETURNS text LANGUAGE sql AS $$
  SELECT string_agg(w ->> 'for', ', ') FROM jsonb_array_elements(explain(p_kind, p_id) -> 'waits') AS w $$;
CREATE FUNCTION pg_temp.last_wait(p_kind text, p_id bigint) RETURNS text LANGUAGE sql AS $$ SELECT explain(p_kind, p_id) #>> '{waits,-1,detail}' $$;

-- Guarantee: explain tells the life of a row, what it waits for, and the lock keys that it needs; a row that is not due needs none.
BEGIN; SELECT t.test('explain_tells_life_waits_and_keys');
SELECT t.user(1, 1000), t.sku(64, 'A', 5, 100), t.order(1, 'A2', 'k'), t.subscription(7, 1, 50, '2024-01-01Z');
SELECT is(pg_temp.waits('order', 1), 'a worker, a pool', 'of a due order');
SELECT is(explain('order', 1) -> 'keys', '["user:1", "sku:64"]', 'its keys');
SET LOCAL timezone = 'Asia/Tokyo';
SELECT is(explain('order', 1) #>> '{waits,0,detail}', 'due since 2024-01-01T00:00:00Z', 'times are UTC, whatever the session has');
RESET timezone;
SELECT is(explain('subscription', 7) -> 'keys', '["user:1"]', 'keys of a due subscription');
SELECT t.serve('2024-01-02Z');
SELECT is(pg_temp.life('order', 1), 'placed, line, fulfilled, sold, paid', 'its life');
SELECT is(explain('order', 1) -> 'keys', '[]', 'it is not due any more');
SELECT is(explain('order', 1) #>> '{waits,0,detail}', 'it is fulfilled', 'and waits for nothing');
ROLLBACK;

-- Guarantee: `explain` tells every charge, decline, later try, refund and incident of a subscription, with period, amount, token, worker and the time of
-- writing.
BEGIN; SELECT t.test('life_of_a_subscription');
:customer
SELECT is(pg_temp.waits('subscription', 1), 'its time', 'declined');
SELECT matches(pg_temp.last_wait('subscription', 1), '^past due: period 1 was declined, try 2 is due at ', 'and tried again');
SELECT deposit(1, 'USD', 100, 'more');
SELECT is(pg_temp.waits('subscription', 1), 'a worker, a pool', 'there is money');
SELECT matches(explain('subscription', 1) #>> '{waits,0,detail}', 'try 2 is due since ', 'it is due');
SELECT t.bill(), refund(1, 'charge', 1, 1, 40, 'late', 'k'), log_incident('user:1', 5, 'w', 'lost', 'apply', NULL, 'slow', 0);
SELECT is(pg_temp.life('subscription', 1), 'made, charged, declined, due, charged, refund, incident', 'its life');
SELECT is((explain('subscription', 1) #> '{life,1}') - 'detail'::text, jsonb_build_object('what', 'charged', 'at', to_char(b.recorded_at, 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
          'amount_minor', 100, 'currency', 'USD', 'token', c.fence, 'worker', c.worker), 'a charge')
  FROM charges AS c JOIN batches AS b ON token = fence WHERE period_no = 0;
SELECT matches(explain('subscription', 1) #>> '{life,1,detail}', '^period 0 from ', 'its period');
SELECT is(explain('subscription', 1) #>> '{life,5,amount_minor}', '40', 'the refund');
SELECT is(explain('subscription', 1) #>> '{life,5,detail}', 'period 1: late', 'its reason');
SELECT is(explain('subscription', 1) #>> '{life,6,detail}', 'lost, user:1, apply: slow', 'the incident');
ROLLBACK;

BEGIN; SELECT t.test('life_has_what_support_did');
:customer
SELECT write_off(1, 1, 1, 'moved away', 'k'), pause_subscription(1, 1, 2, 2);
SELECT is(pg_temp.life('subscription', 1), 'made, charged, declined, written off, skipped', 'given up and paused');
SELECT is(explain('subscription', 1) #>> '{life,3,detail}', 'period 1: moved away', 'the reason');
SELECT matches(pg_temp.last_wait('subscription', 1), '^paused: period 4 is due at ', 'the pause');
SELECT park_rows('billing', '{1}', 7, 'w', 'a broken wallet');
SELECT is(pg_temp.waits('subscription', 1), 'a person', 'parked');
SELECT is(pg_temp.last_wait('subscription', 1), 'parked: a broken wallet; ledgerlock parked release subscription:1', 'and what to do');
SELECT release_rows('billing', '{1}'), cancel_subscription(1, 1, 'now');
SELECT is(pg_temp.life('subscription', 1), 'made, charged, declined, written off, skipped, parked, released, cancelled', 'ended');
SELECT is(pg_temp.waits('subscription', 1) || ': ' || pg_temp.last_wait('subscription', 1), 'nothing: it is cancelled', 'and waits for nothing');
ROLLBACK;

BEGIN; SELECT t.test('life_of_an_order');
SELECT t.user(1, 2000), t.sku(64, 'A', 5, 10), t.sku(65, 'B', 5, 10), t.order(1, 'A3 B1', 'a', now()), t.order(1, 'A1000', 'b', now()), t.serve(),
       t.order(1, 'A1', 'c', now()), return_units(1, 1, 'A', 2, 'too small', 'k'), cancel_order(1, 3);
SELECT is(pg_temp.life('order', 1), 'placed, line, line, fulfilled, sold, sold, paid, returned', 'its lines, sales, payment and return');
SELECT is(concat_ws(' ', explain('order', 1) #> '{life,6,amount_minor}', explain('order', 1) #> '{life,7,amount_minor}', explain('order', 1) #>> '{life,7,detail}'),
          '40 20 2 of A: too small', 'their amounts');
SELECT is(explain('order', 2) #>> '{life,2,detail}', 'out of stock: A', 'why it was rejected');
SELECT is(pg_temp.life('order', 3), 'placed, line, cancelled', 'taken back');
ROLLBACK;

-- Guarantee: `explain` names what a due row waits for: a held key with its holder and the lease left, a session that holds its row, its paused job, an
-- older order of the same SKU.
BEGIN; SELECT t.test('older_order_pause_and_pool_are_waited_for');
SELECT t.user(1, 2000), t.sku(64, 'A', 5, 10), t.order(1, 'A1', 'a'), t.order(1, 'A1', 'b', '2024-01-02Z'), t.subscription(1, 1, 10, '2024-01-01Z');
SELECT is(pg_temp.waits('order', 2), 'a worker, an older order, a pool', 'the first goes first');
SELECT is(explain('order', 2) #>> '{waits,1,detail}', 'order 1 was placed before and wants a SKU of this one, too; 1 such orders stand before it', 'the first is named');
SELECT pause_job('billing', 'the bank is closed');
SELECT is(pg_temp.waits('subscription', 1), 'a worker, its job, a pool', 'its job is paused');
SELECT matches(explain('subscription', 1) #>> '{waits,1,detail}', ': the bank is closed$', 'why');
SELECT is(pg_temp.last_wait('subscription', 1), 'no worker of billing has reported for ten seconds', 'no pool runs');
ROLLBACK;

BEGIN; SELECT t.test('explain_of_no_row_is_null_and_of_no_kind_refused');
SELECT is(explain('order', 404), NULL, 'no order');
SELECT is(explain('subscription', 404), NULL, 'no subscription');
SELECT t.says('LL002', $$explain('invoice', 1)$$, 'no kind', 'ledgerlock_reader');
ROLLBACK;

-- Guarantee: status tells in one document what the newest rows, the last audit, stock, sessions that wait, pauses, incidents and workers are.
BEGIN; SELECT t.test('status_is_one_document');
SELECT t.user(1, 1000), t.sku(64, 'A', 5, 100), t.order(1, 'A2', 'k'), t.serve('2024-01-02Z');
SELECT report_worker('p', 0, 'orders', 'host', 10, '{"fulfilled": 1}'), report_worker('p', 1, 'orders', 'host', 11, '{"fulfilled": 2}');
SELECT pause_job('billing', 'a reason');
SELECT is((SELECT array_agg(key ORDER BY key) FROM jsonb_object_keys(status('2024-01-02Z')) AS key),
          '{audit,counted,database,incidents,newest,now,paused,stock,waits,workers,working}', 'its members');
SELECT is(status('2024-01-02Z') #>> '{newest,0,charged_twice}', '0', 'the newest rows');
SELECT is(status('2024-01-02Z') #> '{stock,0}', '{"sku": "A", "sold": 2, "on_hand": 3, "initial_qty": 5}', 'stock');
SELECT is(status() #>> '{counted,orders,fulfilled}', '3', 'the sum of the counters');
SELECT is(status() #>> '{working,orders}', '2', 'the workers of a job');
SELECT is(status() #>> '{paused,0,reason}', 'a reason', 'a pause');
SELECT report_worker('p', 2, 'orders', 'host', 12, '{"fulfilled": "many"}'), report_worker('p', 3, 'orders', 'host', 13, '[1]'),
       report_worker('p', 4, 'orders', 'host', 14, '{"fulfilled": 1e30}');
SELECT is(status() #>> '{counted,orders,fulfilled}', '9007199254740992', 'counters that are no numbers are left out');
ROLLBACK;

-- Guarantee: report sums by currency and month what the ledger has, and says by how much the wallets differ from it.
BEGIN; SELECT t.test('report_sums_the_ledger');
SELECT t.user(1, 1000), t.sku(64, 'A', 5, 100), t.order(1, 'A2', 'k'), t.serve('2024-01-02Z');
SELECT is((SELECT string_agg(concat_ws(' ', l ->> 'month', l ->> 'deposits', l ->> 'order_revenue', l ->> 'wallets', l ->> 'difference'), ', ')
             FROM jsonb_array_elements(report()) AS l), '2023-12 1000 0 1000 0, 2024-01 0 200 800 0, 1000 200 800 0', 'months and their sums');
ROLLBACK;

-- In the world of the audit each sum is taken once more, from the ledger and the wallets; its debts were counted by hand.
-- Guarantee: The report of each month is the sum of its entries, and its last line is what the wallets hold.
BEGIN; SELECT t.test('each_month_is_the_sum_of_its_entries');
SET LOCAL ledgerlock.repair = on;
\ir audit/rows.sql
\ir audit/events.sql
\ir audit/corrections.sql
CREATE TEMP TABLE told AS SELECT * FROM jsonb_to_recordset(report('2024-04-10Z')) AS r (currency text, month text, deposits bigint, subscription_revenue bigint,
  order_revenue bigint, refunds bigint, withdrawals bigint, wallets bigint, owed bigint, written_off bigint, difference bigint);
CREATE TEMP VIEW moved AS SELECT currency, to_char(moved_at, 'YYYY-MM') AS month, kind, amount_minor AS minor,
  CASE debit WHEN 'wallet' THEN amount_minor ELSE -amount_minor END AS spent, CASE credit WHEN 'wallet' THEN amount_minor ELSE -amount_minor END AS got FROM ledger;
SELECT is(ARRAY[deposits, subscription_revenue, order_revenue, refunds, withdrawals, wallets], (SELECT ARRAY[
  coalesce(sum(minor) FILTER (WHERE kind = 'deposit' AND m.month = t.month), 0), coalesce(sum(spent) FILTER (WHERE kind IN ('charge', 'proration') AND m.month = t.month), 0),
  coalesce(sum(minor) FILTER (WHERE kind = 'payment' AND m.month = t.month), 0), coalesce(sum(minor) FILTER (WHERE kind IN ('refund', 'void') AND m.month = t.month), 0),
  coalesce(sum(minor) FILTER (WHERE kind = 'withdrawal' AND m.month = t.month), 0), coalesce(sum(got) FILTER (WHERE m.month <= t.month), 0)]::bigint[]
  FROM moved AS m WHERE m.currency = t.currency), currency || ' ' || month) FROM told AS t WHERE month IS NOT NULL;
SELECT is(wallets || ' ' || difference, (SELECT sum(balance_minor) FROM users AS u WHERE u.currency = t.currency) || ' 0', 'the wallets in ' || currency) FROM told AS t WHERE month IS NULL;
CREATE TEMP VIEW debts AS SELECT string_agg(concat_ws(' ', currency, month, owed, written_off), ', ' ORDER BY currency, month) AS all FROM (TABLE told) AS r WHERE owed <> 0 OR written_off <> 0;
SELECT is((TABLE debts), 'USD 2024-03 10000 100, USD 2024-04 9000 0, USD 19000 100', 'debts, and what was given up');
ROLLBACK;

-- A debt costs by the terms of its own period, and so does what is waived.
BEGIN; SELECT t.test('debts_cost_what_their_periods_do');
INSERT INTO retry_schedules (pauses_s) VALUES ('{3600}');
SELECT t.user(1, 99), t.subscription(1, 1, 100, '2024-01-01 08:00Z'), t.bill('2024-01-01 09:00Z'), set_terms(1, 1, 1, 'duo', 2, 80), set_terms(1, 1, 3, 'solo', 1, 90), t.bill('2024-01-01 10:00Z');
SELECT is(string_agg(l ->> 'owed', ' '), '0 100 160 160 90 510', 'month by month, and their sum') FROM jsonb_array_elements(report('2024-04-15Z')) AS l;
SELECT resume_subscription(1, 1, p_at => '2024-04-15Z'), t.bill('2024-04-15Z');
SELECT is(string_agg(concat_ws(' ', period_no, state, tries, amount_minor), ', ' ORDER BY period_no), '0 waived 2 100, 1 waived 0 160, 2 waived 0 160, 3 captured 1 90', 'waived by the same terms') FROM charges;
ROLLBACK;

-- Guarantee: doctor looks at dead rows, old transactions, months, leases, parked rows, pauses and workers.
BEGIN; SELECT t.test('doctor_checks_the_tables');
SELECT is((SELECT string_agg(f ->> 'name', ' ') FROM jsonb_array_elements(doctor()) AS f),
          'dead_rows oldest_transaction months_ahead lease_length parked_rows paused_jobs workers_seen', 'its checks');
CREATE FUNCTION pg_temp.finds(p_name text) RETURNS text LANGUAGE sql AS $$ SELECT concat_ws(' ', f ->> 'verdict', f ->> 'says') FROM jsonb_array_elements(doctor(3000)) AS f WHERE f ->> 'name' = p_name $$;
SELECT t.subscription(1, u, 100, now()) FROM t.user(1), generate_series(1, 1) AS u;
SELECT is(pg_temp.finds('months_ahead'), '1 1 of this month and the next have no partition', 'the fixture made no month to come');
SELECT make_months(now(), now() + interval '1 month');
SELECT is(pg_temp.finds('months_ahead'), '0 this month and the next have partitions (0 missing)', 'now it is there');
SELECT is(pg_temp.finds('paused_jobs'), '0 0 jobs are paused', 'no pause');
SELECT is(pg_temp.finds('parked_rows'), '0 0 rows are parked', 'no row is parked');
SELECT is(pg_temp.finds('lease_length'), '0 3000 ms; no batch was made yet', 'no batch');
SELECT pause_job('orders'), park_rows('billing', '{1}', 9, 'w', 'why');
INSERT INTO batches (job, token, worker, at, done, refused, ids, feed_no) VALUES ('billing', (extract(epoch FROM now()) * 1000000 - 60000000)::bigint, 'w', now(), 0, 0, '{}', 1);
SELECT is(pg_temp.finds('paused_jobs'), '1 1 jobs are paused', 'a pause is found');
SELECT is(pg_temp.finds('parked_rows'), '1 1 rows are parked', 'a parked row is found');
SELECT matches(pg_temp.finds('lease_length'), '^2 3000 ms; of the last batches 99 % took at most 6', 'a batch that was longer than the lease is found');
ROLLBACK;

BEGIN; SELECT t.test('rows_of_no_job_are_neither_parked_nor_released');
SELECT t.says('LL002', $$park_rows('payments', '{1}', 9, 'w', 'why')$$, 'parked', 'ledgerlock_worker');
SELECT t.says('LL002', $$park_rows(NULL, '{1}', 9, 'w', 'why')$$, 'no name', 'ledgerlock_worker');
SELECT t.says('LL002', $$release_rows('payments', '{1}')$$, 'released', 'ledgerlock_support');
ROLLBACK;

-- ---- if a guard had failed ----

-- User 1 has paid for a month and for an order; user 2 is declined. The guards that would refuse the rows are gone.
-- Guarantee: If a guard failed, the verdict counts it at once, by rows alone: a period charged twice, an order paid or sold twice, units that were never
-- there, and a wallet or a SKU that is not the sum of its rows.
BEGIN; SELECT t.test('failure_of_a_guard_is_counted');
SELECT t.user(1, 1000), t.user(2, 10), t.sku(1, 'A', 10, 250), t.subscription(1, 1, 100, now() - interval '1 hour'), t.subscription(2, 2, 100, now() - interval '1 hour'),
       t.order(1, 'A1', 'k', now()), t.bill(), t.serve();
SET LOCAL ledgerlock.repair = on;
ALTER TABLE charges DROP CONSTRAINT one_charge_per_period;
ALTER TABLE stock DROP CONSTRAINT on_hand_never_negative;
\set twice 'INSERT INTO charges SELECT * FROM charges WHERE subscription_id = 1; '
\set older 'UPDATE charges SET charged_at = now() - interval ''6 minutes'', period_start = period_start - interval ''1 second''; UPDATE batches SET at = at - interval ''6 minutes''; '
\set paid 'UPDATE users SET balance_minor = balance_minor - 250 WHERE user_id = 1; '
SELECT t.would(verdict, format('t.then(%L, %L)', forged, 'SELECT concat_ws('' '', charges, wallets, skus, charged_twice, oversold, wrong_totals) FROM check_newest(NULL, 20)'),
               words, 'postgres') FROM (VALUES
  ('SELECT 1', '2 2 1 0 0 0', 'all hold'), (:'twice', '3 2 1 1 0 1', 'a period is charged twice'),
  (:'twice' || 'UPDATE users SET balance_minor = balance_minor - 100 WHERE user_id = 1', '3 2 1 1 0 0', 'and paid twice'),
  (:'paid', '2 2 1 0 0 1', 'an order is paid twice'), ('UPDATE stock SET on_hand = on_hand - 1', '2 2 1 0 0 1', 'and sold twice'),
  ($$UPDATE orders SET total_minor = 0; UPDATE users SET balance_minor = 900 WHERE user_id = 1; UPDATE order_lines SET qty = 11, unit_price_minor = 0; UPDATE stock SET on_hand = -1$$,
   '2 2 1 0 1 0', 'units are sold that were never there'),
  ('UPDATE stock SET on_hand = on_hand + 1', '2 2 1 0 0 1', 'units come from nowhere'), ('UPDATE users SET balance_minor = balance_minor + 1 WHERE user_id = 1', '2 2 1 0 0 1', 'so does money'),
  (:'older', '0 0 1 0 0 0', 'what is older is not read'),
  (:'older' || :'paid' || $$UPDATE batches SET at = now() WHERE job = 'orders'$$, '0 1 1 0 0 1', 'the wallet of an order is read')) AS v (forged, verdict, words);
ROLLBACK;

-- Guarantee: SKUs and sales that are too many to be counted are told as such.
BEGIN; SELECT t.test('too_many_skus_are_not_counted');
SELECT t.sku(1, 'A', 10, 250);
SELECT is(skus || ' ' || oversold, '0 -1', 'more pages than are read') FROM check_newest(NULL, 0);
ROLLBACK;

SELECT t.done(80);
