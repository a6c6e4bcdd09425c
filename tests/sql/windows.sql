-- explain, status, report and doctor, which the program prints.
SELECT no_plan();

-- Guarantee: explain tells the life of a row, what it waits for, and the lock keys that it needs; a row that is not due needs none.
BEGIN; SELECT t.test('explain_tells_life_waits_and_keys');
SELECT t.user(1, 1000), t.sku(64, 'A', 5, 100), t.order(1, 'A2', 'k'), t.subscription(7, 1, 50, '2024-01-01Z');
SELECT is((SELECT string_agg(w ->> 'for', ', ') FROM jsonb_array_elements(explain('order', 1) -> 'waits') AS w), 'a worker, a pool', 'of a due order');
SELECT is(explain('order', 1) -> 'keys', '["user:1", "sku:64"]', 'its keys');
SET LOCAL timezone = 'Asia/Tokyo';
SELECT is(explain('order', 1) #>> '{waits,0,detail}', 'due since 2024-01-01T00:00:00Z', 'times are UTC, whatever the session has');
RESET timezone;
SELECT is(explain('subscription', 7) -> 'keys', '["user:1"]', 'keys of a due subscription');
SELECT t.serve('2024-01-02Z');
SELECT is((SELECT string_agg(l ->> 'what', ', ') FROM jsonb_array_elements(explain('order', 1) -> 'life') AS l), 'placed, line, fulfilled, sold, paid', 'its life');
SELECT is(explain('order', 1) -> 'keys', '[]', 'it is not due any more');
SELECT is(explain('order', 1) #>> '{waits,0,detail}', 'it is fulfilled', 'and waits for nothing');
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

-- Guarantee: doctor looks at dead rows, old transactions, months, leases, parked rows, pauses and workers.
BEGIN; SELECT t.test('doctor_checks_the_tables');
SELECT is((SELECT string_agg(f ->> 'name', ' ') FROM jsonb_array_elements(doctor()) AS f),
          'dead_rows oldest_transaction months_ahead lease_length parked_rows paused_jobs workers_seen', 'its checks');
SELECT pause_job('orders');
SELECT is((SELECT f ->> 'says' FROM jsonb_array_elements(doctor()) AS f WHERE f ->> 'name' = 'paused_jobs'), '1 jobs are paused', 'a pause is found');
ROLLBACK;

BEGIN; SELECT t.test('rows_of_no_job_are_neither_parked_nor_released');
SELECT t.says('LL002', $$park_rows('payments', '{1}', 9, 'w', 'why')$$, 'parked', 'ledgerlock_worker');
SELECT t.says('LL002', $$park_rows(NULL, '{1}', 9, 'w', 'why')$$, 'no name', 'ledgerlock_worker');
SELECT t.says('LL002', $$release_rows('payments', '{1}')$$, 'released', 'ledgerlock_support');
ROLLBACK;

SELECT t.done(23);
