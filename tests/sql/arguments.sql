-- Client functions: whose row it is, and which times a client may give. User 3 has paid for a period and an order, user 4 owes a period, and
-- subscription 1 of user 1 and order 7 of user 3 are parked.
\set shop 'SELECT t.user(1), t.user(2), t.user(3, 1000), t.user(4, 10), t.sku(65, ''A'', 10, 250), t.subscription(1, 1, 100, ''2024-01-31Z''); UPDATE subscriptions SET state = ''parked''; SELECT t.subscription(n, n, 100, now() - interval ''49 hours'', ''day'', 10) FROM generate_series(3, 4) AS n; SELECT t.order(3, ''A3'', ''k'', now()); SELECT t.bill(), t.serve(); INSERT INTO orders (order_id, user_id, idempotency_key, request_hash, state, total_minor, currency, placed_at) VALUES (7, 3, ''p'', '''', ''parked'', 0, ''USD'', now());'
SELECT no_plan();

-- ---- whose row it is ----

-- Guarantee: A client function refuses what belongs to another user than it names.
BEGIN; SELECT t.test('client_reaches_no_row_of_another_user');
:shop
CREATE TABLE t.theirs (name text, owner bigint, arguments text);
INSERT INTO t.theirs VALUES
  ('cancel_order', 3, '7'), ('cancel_subscription', 3, '3'), ('change_now', 3, $$3, 'small', 1, 50, 'c'$$), ('keep_subscription', 3, '3'), ('pause_subscription', 3, '3, 1, 1'),
  ('refund', 3, $$'charge', 3, 0, 1, 'late', 'c'$$), ('resume_order', 3, '7'), ('resume_subscription', 1, '1'),
  ('return_units', 3, $$1, 'A', 1, 'broken', 'c'$$), ('set_price', 3, '3, 3, 50'), ('set_terms', 3, $$3, 3, 'small', 1, 50$$),
  ('void_entry', 3, $$'charge', 3, 0, 'never', 'c'$$), ('write_off', 4, $$4, 0, 'gone', 'c'$$);
SELECT t.would('LL002', format('%s(%s, %s)', name, who, arguments)) FROM t.theirs, unnest(ARRAY['2', 'NULL']) AS who (who);
SELECT t.would('true', format('%s(%s, %s) IS NOT NULL', name, owner, arguments)) FROM t.theirs;
SELECT t.says(rows, format('count(*) FROM %s', call), call) FROM (VALUES
  ('1', 'charges_of(3, 3)'), ('0', 'charges_of(2, 3)'), ('0', 'charges_of(NULL, 3)'),
  ('1', 'order_status(3, 1)'), ('0', 'order_status(2, 1)'), ('0', 'order_status(NULL, 1)')) AS v (rows, call);
SELECT is(array_agg(proname::text ORDER BY proname), (SELECT array_agg(name ORDER BY name) FROM (TABLE t.theirs UNION VALUES ('charges_of', 3, ''),
          ('order_status', 3, '')) AS told), 'these are all that name a user and something of that user')
  FROM pg_proc WHERE pronamespace = 'ledgerlock'::regnamespace AND 'p_user_id' = ANY (proargnames)
   AND proargnames && '{p_order_id,p_subscription_id,p_source}' AND has_function_privilege('ledgerlock_test_client', oid, 'EXECUTE');
ROLLBACK;

-- ---- which time it gives ----

-- Guarantee: A client function refuses a time that is not finite or not near to now.
BEGIN; SELECT t.test('client_gives_a_time');
:shop
SELECT t.would(state, format('(%s) IS NOT NULL', replace(call, '@', coalesce(quote_literal(now() + way::interval), quote_nullable(word)))),
               replace(call, '@', coalesce(way, word, 'NULL'))) FROM (VALUES
  ('LL002', $$place_order(1, 'k', t.lines('A1'), @)$$, NULL, '-infinity'), ('LL002', $$place_order(1, 'k', t.lines('A1'), @)$$, NULL, 'infinity'),
  ('LL002', $$place_order(1, 'k', t.lines('A1'), @)$$, NULL, NULL), ('LL002', $$place_order(1, 'k', t.lines('A1'), @)$$, '-7 days', NULL),
  ('LL002', $$place_order(1, 'k', t.lines('A1'), @)$$, '7 days', NULL), ('true', $$place_order(1, 'k', t.lines('A1'), @)$$, '12 hours', NULL),
  ('LL002', $$deposit(1, 'USD', 5, 'k', @)$$, NULL, '1970-01-01Z'), ('LL002', $$deposit(1, 'USD', 5, 'k', @)$$, NULL, 'infinity'),
  ('LL002', $$deposit(1, 'USD', 5, 'k', @)$$, '1 minute', NULL), ('true', $$deposit(1, 'USD', 5, 'k', @)$$, '-1 hour', NULL),
  ('LL002', $$receive_stock('A', '1', 5, @)$$, NULL, '1970-01-01Z'), ('LL002', $$receive_stock('A', '1', 5, @)$$, NULL, 'infinity'),
  ('LL002', $$receive_stock('A', '1', 5, @)$$, '1 minute', NULL), ('true', $$receive_stock('A', '1', 5, @)$$, '-1 hour', NULL),
  ('LL002', 'cancel_subscription(3, 3, p_at => @)', NULL, 'infinity'), ('LL002', 'cancel_subscription(3, 3, p_at => @)', NULL, '-infinity'),
  ('LL002', 'cancel_subscription(3, 3, p_at => @)', '11 years', NULL), ('true', 'cancel_subscription(3, 3, p_at => @)', '9 years', NULL),
  ('LL002', 'cancel_subscription(3, 3, p_at => @)', '-7 days', NULL), ('true', 'cancel_subscription(3, 3, p_at => @)', '-1 hour', NULL),
  ('LL002', $$resume_subscription(1, 1, 'bill_all', @)$$, NULL, 'infinity'), ('LL002', $$resume_subscription(1, 1, 'bill_all', @)$$, NULL, '-infinity'),
  ('LL002', $$resume_subscription(1, 1, 'bill_all', @)$$, '1 year', NULL), ('true', $$resume_subscription(4, 4, 'bill_all', @)$$, '7 days', NULL),
  ('LL002', $$resume_subscription(1, 1, 'bill_all', @)$$, '33 days', NULL), ('LL002', $$resume_subscription(1, 1, 'forgive', @)$$, '1 hour', NULL),
  ('LL002', $$resume_subscription(1, 1, 'never', @)$$, '0', NULL)) AS v (state, call, way, word);
ROLLBACK;

-- Guarantee: Each correction refuses a time that is not near to now.
BEGIN; SELECT t.test('no_correction_has_a_time_that_is_not_near');
:shop
SELECT t.would(state, format('(%s, %s)) IS NOT NULL', call, at), format('%s, %s)', call, at))
  FROM unnest(ARRAY[$$refund(3, 'charge', 3, 0, 1, 'late', 'c'$$, $$void_entry(3, 'charge', 3, 0, 'never', 'c'$$,
                    $$withdraw(3, 'USD', 1, 'asked for', 'c'$$, $$return_units(3, 1, 'A', 1, 'broken', 'c'$$, $$adjust_stock('A', -1, 'lost', 'c'$$,
                    $$write_off(4, 4, 0, 'gone', 'c'$$, $$change_now(3, 3, 'small', 1, 50, 'c'$$]) AS call,
       (VALUES ('LL002', $$'1970-01-01Z'$$), ('LL002', $$now() + interval '1 minute'$$), ('LL002', $$'infinity'$$), ('LL002', 'NULL'), ('true', 'now()'))
       AS times (state, at);
ROLLBACK;

SELECT t.done(108);
