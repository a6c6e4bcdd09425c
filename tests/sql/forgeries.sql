-- The functions of a worker, called by a worker that lies, and fences: what a batch may write.
-- User 1 has 6.50, user 2 nothing, user 3 10.00; their fences are 5. Subscription 1 is paid for its first month, 2 is declined, 3 cancelled, 5 unpaid;
-- 4 and 6 of user 1 and 7 of user 2 are due. Order 1 is fulfilled, 2 rejected, 3 pending, and 4 is of tomorrow.
\set shop 'SELECT t.user(1, 1000), t.user(2), t.user(3, 1000), t.sku(1, ''A'', 10, 250); SELECT t.subscription(n, CASE n WHEN 1 THEN 1 ELSE 2 END, 100, now() - interval ''3 days'') FROM unnest(''{1,2,5,7}''::bigint[]) AS n; SELECT t.order(1, ''A1'', ''k1'', now()), t.order(1, ''A9'', ''k2'', now()); SELECT t.bill(), t.serve(); UPDATE subscriptions SET state = ''unpaid'', retries = 5 WHERE subscription_id = 5; UPDATE subscriptions SET next_due_at = now() WHERE subscription_id = 7; SELECT t.subscription(n, 1, 100, now() - interval ''3 days'') FROM unnest(''{3,4,6}''::bigint[]) AS n; SELECT cancel_subscription(1, 3, ''now''), t.order(1, ''A1'', ''k3'', now()), t.order(1, ''A1'', ''k4'', now() + interval ''1 day''); UPDATE users SET fence = 5; UPDATE stock SET fence = 5; UPDATE feed_base SET base = base + 1;'
SELECT no_plan();

-- Every row of every table that the functions of a worker write.
CREATE FUNCTION pg_temp.all_rows() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  v_all  text := '';
  v_rows text;
  v_name text;
BEGIN
  FOREACH v_name IN ARRAY '{users,stock,subscriptions,charges,orders,order_lines,wallet_entries,stock_entries,events,batches,lock_incidents,months,lock_token}'::text[] LOOP
    EXECUTE format('SELECT string_agg(x::text, '''' ORDER BY x) FROM %I AS x', v_name) INTO v_rows;
    v_all := v_all || md5(coalesce(v_rows, ''));
  END LOOP;
  RETURN v_all;
END $$;
-- A worker calls: is answered with this SQLSTATE, or changes nothing.
CREATE FUNCTION pg_temp.lies(p_state text, p_call text, p_words text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  v_before text := pg_temp.all_rows();
  v_said   record := t.ask('SELECT * FROM ' || p_call, 'ledgerlock_worker', false);
BEGIN
  RETURN is(CASE WHEN v_said.words IS NOT NULL THEN v_said.answer WHEN pg_temp.all_rows() = v_before THEN 'nothing changes' ELSE 'something changes' END,
            p_state, p_words);
END $$;
CREATE FUNCTION pg_temp.place(p_id bigint) RETURNS text LANGUAGE sql STABLE AS $$
  SELECT quote_literal(ctid) || '::tid' FROM ledgerlock.subscriptions WHERE subscription_id = p_id $$;
CREATE FUNCTION pg_temp.charge(p_id bigint, p_payer bigint, p_token text DEFAULT '9', p_now text DEFAULT 'NULL', p_place bigint DEFAULT NULL, p_max text DEFAULT '1000')
RETURNS text LANGUAGE sql STABLE AS $$
  SELECT format('apply_charges(%s, ''w'', %s, ''{%s}'', ARRAY[%s], ''{%s}'', %s)', p_token, p_now, p_id, pg_temp.place(coalesce(p_place, p_id)), p_payer, p_max) $$;

-- Guarantee: The functions of a worker believe nothing: a false payer, place, time or token changes nothing.
BEGIN; SELECT t.test('worker_that_lies_changes_nothing');
:shop
SELECT pg_temp.lies(state, call, words) FROM (VALUES
  ('nothing changes', pg_temp.charge(4, 3), 'a payer who is another'),
  ('nothing changes', pg_temp.charge(4, 1, p_place => 6), 'the place of another'),
  ('23505', format('apply_charges(9, ''w'', NULL, ''{4,4}'', ARRAY[%1$s, %1$s], ''{1,1}'', 1000)', pg_temp.place(4)), 'a subscription twice'),
  ('nothing changes', pg_temp.charge(1, 1), 'a subscription that is not due'),
  ('nothing changes', pg_temp.charge(3, 1), 'a subscription that is cancelled'),
  ('nothing changes', pg_temp.charge(5, 2), 'a subscription that is unpaid'),
  ('LL002', pg_temp.charge(1, 1, p_now => 'now() + interval ''1 s'''), 'a time to come'),
  ('LL002', pg_temp.charge(1, 1, p_now => '''infinity'''), 'a time without end'),
  ('nothing changes', pg_temp.charge(4, 1, '4'), 'a token below the fence'),
  ('nothing changes', pg_temp.charge(7, 2, '4'), 'a decline with a token below the fence'),
  ('LL002', pg_temp.charge(4, 1, '9006099743113216'), 'a token beyond the end'),
  ('LL002', pg_temp.charge(4, 1, '((extract(epoch FROM clock_timestamp()) + 46800) * 1000000)::bigint'), 'a token of tonight'),
  ('LL002', pg_temp.charge(4, 1, 'NULL'), 'no token'),
  ('LL002', pg_temp.charge(4, 1, p_max => 'NULL'), 'periods without end'),
  ('LL002', pg_temp.charge(4, 1, p_max => '1000001'), 'more periods than any setting'),
  ('nothing changes', 'keep_months(''1900-01-01Z'', 2, 1000)', 'months of 1900'),
  ('LL002', 'keep_months(now(), 120, 1000)', 'months for ten years'),
  ('LL002', 'keep_months(now() + interval ''1 year'', 2, 1000)', 'months of next year'),
  ('nothing changes', 'apply_orders(9, NULL, ''{1,2}'', ''w'')', 'orders that are decided'),
  ('XX000', 'apply_orders(9, NULL, ''{3,3}'', ''w'')', 'an order twice'),
  ('nothing changes', 'apply_orders(9, NULL, ''{4}'', ''w'')', 'an order of tomorrow'),
  ('LL002', 'apply_orders(9, now() + interval ''2 days'', ''{4}'', ''w'')', 'an order of tomorrow, in advance'),
  ('XX000', 'apply_orders(4, NULL, ''{3}'', ''w'')', 'an order with a token below the fence'),
  ('LL002', 'apply_orders(9007199254740991, NULL, ''{3}'', ''w'')', 'an order with a token beyond the end'),
  ('LL002', 'apply_orders(((extract(epoch FROM clock_timestamp()) + 46800) * 1000000)::bigint, NULL, ''{3}'', ''w'')', 'an order with a token of tonight'),
  ('nothing changes', 'park_rows(''orders'', ''{1,2}'', 9, ''w'', ''why'')', 'decided orders parked'),
  ('nothing changes', 'park_rows(''billing'', ''{3,5}'', 9, ''w'', ''why'')', 'ended subscriptions parked'),
  ('LL002', 'log_incident(''user:1'', 1, ''w'', ''forced_unlock'', ''apply'', NULL, '''', (extract(epoch FROM now() - ''2001-01-01'') * 1000)::bigint)', 'an incident of 2001'),
  ('LL002', 'log_incident(''user:1'', 1, ''w'', ''lost'', ''apply'', NULL, '''', -1)', 'an incident to come'),
  ('LL002', 'log_incident(''user:1'', 1, ''w'', ''parked'', ''apply'', NULL, '''', 0)', 'an incident that park_* writes'),
  ('LL002', 'log_incident(''user:1'', 1, ''w'', ''resumed'', ''apply'', NULL, '''', 0)', 'an incident that release_* writes'),
  ('LL002', 'next_token(((extract(epoch FROM clock_timestamp()) + 46800) * 1000000)::bigint)', 'a token of tonight drawn'),
  ('LL002', 'next_token(9006099743113215)', 'a token beyond the end drawn'),
  ('LL002', 'next_token(NULL)', 'a token above no floor')) AS v (state, call, words);
SELECT t.says('42501', $$INSERT INTO retry_schedules (pauses_s) VALUES ('{31622400}')$$, 'a schedule of its own', 'ledgerlock_worker');
ROLLBACK;

-- Guarantee: A worker does all of its work through functions of the owner.
BEGIN; SELECT t.test('truth_is_written');
:shop
SELECT t.says('true', 'next_token(8) > 8', NULL, 'ledgerlock_worker');
SELECT t.says('(1,{1})', $$(array_length(user_ids, 1), user_ids) FROM claim_users(9, '{1}')$$, NULL, 'ledgerlock_worker');
SELECT t.says('(1,{1})', $$(array_length(sku_ids, 1), sku_ids) FROM claim_stock(9, '{1}')$$, NULL, 'ledgerlock_worker');
SELECT t.says('(1,0,0,0,0,0,1)', pg_temp.charge(4, 1), 'a period is captured', 'ledgerlock_worker');
SELECT t.new_batch() > 0;
SELECT t.says('(0,1,0,0,0,0,1)', pg_temp.charge(7, 2), 'and another one declined', 'ledgerlock_worker');
SELECT t.new_batch() > 0;
SELECT t.says('(1,0,0,0,1)', $$apply_orders(9, NULL, '{3}', 'w')$$, 'an order is served', 'ledgerlock_worker');
SELECT is(balance_minor, 300::bigint, 'the wallet has paid') FROM users WHERE user_id = 1;
SELECT is(on_hand, 8::bigint, 'the unit is gone') FROM stock;
SELECT t.says(id, call, NULL, 'ledgerlock_worker') FROM (VALUES
  ('1', $$park_rows('billing', '{1}', 9, 'w', 'why')$$), ('2', $$park_rows('billing', '{2}', 9, 'w', 'why')$$), ('4', $$park_rows('orders', '{4}', 9, 'w', 'why')$$),
  ('true', $$log_incident('user:1', 1, 'w', 'lost', 'apply', NULL, '', 86400000) IS NOT NULL$$),
  ('true', $$report_worker('p', 0, 'billing', 'h', 1, '{}') IS NOT NULL$$)) AS v (id, call);
SELECT is(count(*), 4::bigint, 'each row that was parked is told') FROM lock_incidents;
SELECT is(count(*), 1::bigint, 'the worker is told') FROM workers;
ROLLBACK;

-- ---- fences ----

-- Guarantee: A worker whose token is below the fence of its rows writes nothing.
BEGIN; SELECT t.test('token_below_the_fence_writes_nothing');
:shop
UPDATE users SET fence = 100;
SELECT is(user_ids, NULL, 'such a wallet is not claimed') FROM claim_users(99, '{1,2,3}');
SELECT is(user_ids, '{1,2,3}', 'with the token of its fence it is') FROM claim_users(100, '{3,2,1}');
SELECT pg_temp.lies('nothing changes', pg_temp.charge(4, 1, '99'), 'no charge');
SELECT pg_temp.lies('XX000', $$apply_orders(99, NULL, '{3}', 'w')$$, 'no order');
UPDATE users SET fence = 5;
UPDATE stock SET fence = 100;
SELECT is(sku_ids, NULL, 'such a SKU is not claimed') FROM claim_stock(99, '{1}');
SELECT pg_temp.lies('XX000', $$apply_orders(99, NULL, '{3}', 'w')$$, 'an order is never paid whose stock did not move');
SELECT is(concat(batch), '(1,0,0,0,0,0,1)', 'a higher token writes') FROM apply_charges(101, 'w', NULL, '{4}', ARRAY[(SELECT ctid FROM subscriptions WHERE subscription_id = 4)], '{1}', 1000) AS batch;
SELECT is(fence, 101::bigint, 'and raises the fence') FROM users WHERE user_id = 1;
ROLLBACK;

-- Guarantee: A batch reads what is due again under its claim: what became undue since is left alone.
BEGIN; SELECT t.test('apply_reads_again_what_is_due');
:shop
UPDATE subscriptions SET state = 'unpaid', retries = 1 WHERE subscription_id = 4;
UPDATE orders SET state = 'parked' WHERE order_id = 3;
SELECT pg_temp.lies('nothing changes', pg_temp.charge(4, 1), 'a subscription that is unpaid by now');
SELECT pg_temp.lies('nothing changes', $$apply_orders(9, NULL, '{3}', 'w')$$, 'an order that is parked by now');
SELECT ctid AS place FROM subscriptions WHERE subscription_id = 6 \gset
UPDATE subscriptions SET retries = 0 WHERE subscription_id = 6;
SELECT pg_temp.lies('nothing changes', format('apply_charges(9, ''w'', NULL, ''{6}'', ARRAY[%L::tid], ''{1}'', 1000)', :'place'), 'a subscription that moved since its pull');
SELECT pg_temp.lies('nothing changes', pg_temp.charge(6, 1, p_now => 'now() - interval ''4 days'''), 'a subscription that is not due then');
ROLLBACK;

-- Guarantee: A stranger's trigger that keeps a row from being written undoes the whole batch, and nothing is taken for done.
BEGIN; SELECT t.test('apply_is_rolled_back_when_a_trigger_keeps_a_row_unwritten');
:shop
CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
CREATE FUNCTION pg_temp.kept(p_table text, p_event text, p_call text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  v_is text;
BEGIN
  EXECUTE format('CREATE TRIGGER a_stranger BEFORE %s ON %s FOR EACH ROW EXECUTE FUNCTION keep()', p_event, p_table);
  v_is := pg_temp.lies('XX000', p_call, p_event || ' of ' || p_table);
  EXECUTE format('DROP TRIGGER a_stranger ON %s', p_table);
  RETURN v_is;
END $$;
SELECT pg_temp.kept(name, event, $$apply_orders(9, NULL, '{3}', 'w')$$) FROM (VALUES ('orders', 'UPDATE'), ('stock', 'UPDATE'), ('users', 'UPDATE'),
  ('batches', 'INSERT')) AS v (name, event);
SELECT pg_temp.kept(name, event, pg_temp.charge(4, 1)) FROM (VALUES ('subscriptions', 'UPDATE'), ('users', 'UPDATE'), ('batches', 'INSERT'),
  (to_char(now() - interval '3 days', '"charges_"YYYY_MM'), 'INSERT')) AS v (name, event);
SELECT pg_temp.kept('events', 'INSERT', pg_temp.charge(7, 2));
ROLLBACK;

SELECT t.done(71);
