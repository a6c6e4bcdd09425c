-- Roles: what workers, and people by their work, may and may not do.
\set shop 'SELECT t.user(1, 1000), t.sku(1, ''A'', 10, 250), t.subscription(1, 1, 100, ''2024-01-31Z''), t.order(1, ''A1'', ''first'', now());'
SELECT no_plan();

-- The statements, one for each table or column, that somebody may run; all of them: he may not.
CREATE FUNCTION pg_temp.allowed(p_who text, p_statements text[]) RETURNS text[] LANGUAGE sql AS $$
  SELECT array_agg(s) FROM unnest(p_statements) AS s, t.ask(s, p_who, true) AS said WHERE said.answer IS DISTINCT FROM '42501' $$;
CREATE TEMP VIEW tables AS
  SELECT oid::regclass AS name, relispartition AS is_partition FROM pg_class WHERE relnamespace = 'ledgerlock'::regnamespace AND relkind IN ('r', 'p');
CREATE FUNCTION pg_temp.each_table(p_template text) RETURNS text[] LANGUAGE sql AS $$ SELECT array_agg(format(p_template, name)) FROM tables $$;
CREATE TEMP TABLE people (who text, reads boolean, functions text);
INSERT INTO people VALUES
  ('shop', false, 'balance cancel_order cancel_subscription charges_of create_user decisions_from decisions_since keep_subscription order_by_key order_status
    orders_of pause_subscription pay_with place_order subscribe subscriptions_of'),
  ('cashier', false, 'deposit withdraw'),
  ('warehouse', false, 'adjust_stock receive_stock'),
  ('support', true, 'adopt_orphan attempts_of balance cancel_order cancel_subscription change_now charges_of check_newest close_account cost_of_periods cost_of_units
    create_sku create_user decisions_from decisions_since doctor explain first_open keep_subscription life_of_order
    life_of_subscription month_sums newest_sales order_by_key order_status orders_of paid_for_period pause_job pause_subscription
    pay_with payment_key period_start prorated reconcile refund refund_orphan release_rows report resume_job resume_order resume_subscription return_units set_price
    set_sku_price set_terms status subscribe subscriptions_of terms_of void_entry wait_of_payment waits_of_order waits_of_subscription write_off'),
  ('reader', true, 'attempts_of check_newest cost_of_periods cost_of_units doctor explain first_open life_of_order life_of_subscription month_sums
    newest_sales paid_for_period payment_key period_start prorated reconcile report status terms_of wait_of_payment waits_of_order waits_of_subscription'),
  ('worker', true, 'apply_charges apply_orders attempts_of check_newest claim_stock claim_users cost_of_periods cost_of_units doctor explain first_open
    forget_workers keep_months life_of_order life_of_subscription log_incident month_sums newest_sales next_token paid_for_period
    park_rows payment_key payment_looks period_start prorated reconcile report report_audit report_worker send_payments settle_payments status take_over_payments terms_of wait_of_payment waits_of_order waits_of_subscription');

-- Guarantee: Each role can use the functions of its own work alone: shop, cashier, warehouse, support, reader and worker.
BEGIN; SELECT t.test('role_can_use_its_own_functions');
SELECT is((SELECT array_agg(proname::text ORDER BY proname) FROM pg_proc WHERE pronamespace = 'ledgerlock'::regnamespace
              AND has_function_privilege('ledgerlock_' || who, oid, 'EXECUTE')), regexp_split_to_array(functions, '\s+'), 'functions of ' || who) FROM people;
SELECT is(array_agg(proname), NULL, 'PUBLIC has none') FROM pg_proc AS p, aclexplode(coalesce(proacl, acldefault('f', proowner))) AS a
 WHERE pronamespace = 'ledgerlock'::regnamespace AND a.grantee = 0;
SELECT is(array_agg(privilege_type), NULL, 'PUBLIC may not even look into the schema') FROM pg_namespace, aclexplode(nspacl) AS a
 WHERE nspname = 'ledgerlock' AND a.grantee = 0;
ROLLBACK;

-- Guarantee: No role of a worker or a client writes a table by itself: it mints no money and no stock, freezes no debt, takes back no decision,
-- lowers no fence, and empties or changes no table.
BEGIN; SELECT t.test('role_writes_no_table');
SELECT ok(count(*) > 30, 'there are tables') FROM tables;
SELECT is(pg_temp.allowed('ledgerlock_' || who, pg_temp.each_table(statement)), NULL, who || ': ' || statement)
  FROM people, unnest(ARRAY['INSERT INTO %s DEFAULT VALUES', 'DELETE FROM %s', 'TRUNCATE %s', 'DROP TABLE %s', 'ALTER TABLE %s ADD COLUMN x int',
                            'ALTER TABLE %s DISABLE TRIGGER ALL', 'CREATE INDEX ON %s ((1))', 'SELECT 1 FROM %s FOR KEY SHARE']) AS statement;
SELECT is(pg_temp.allowed('ledgerlock_' || who, (SELECT array_agg(format('UPDATE %s SET %I = DEFAULT', attrelid::regclass, attname))
            FROM pg_attribute JOIN tables ON name = attrelid WHERE attnum > 0 AND NOT attisdropped)), NULL, who || ': UPDATE of any column') FROM people;
ROLLBACK;

-- Guarantee: Only support, readers and workers read the tables and views.
BEGIN; SELECT t.test('role_reads_tables_or_does_not');
SELECT is(pg_temp.allowed('ledgerlock_' || who, pg_temp.each_table('SELECT 1 FROM %s')),
          (SELECT array_agg(format('SELECT 1 FROM %s', name)) FROM tables WHERE reads AND NOT is_partition), who) FROM people;
CREATE TEMP VIEW views AS SELECT relname::text AS name FROM pg_class WHERE relnamespace = 'ledgerlock'::regnamespace AND relkind = 'v';
SELECT is(array_agg(name ORDER BY name), '{ledger,live_workers,open_charges,open_ledger,open_orders,open_stock_ledger,stock_ledger}', 'the views') FROM views;
SELECT is((SELECT array_agg(name ORDER BY name) FROM views WHERE has_table_privilege('ledgerlock_' || who, name, 'SELECT')),
          (SELECT array_agg(name ORDER BY name) FROM views WHERE reads), 'views of ' || who) FROM people;
SELECT is(array_agg(who || ' ' || name), NULL, 'nobody writes through a view') FROM people, views
 WHERE has_table_privilege('ledgerlock_' || who, name, 'INSERT, UPDATE, DELETE');
ROLLBACK;

BEGIN; SELECT t.test('worker');
:shop
SELECT t.would(state, statement, NULL, 'ledgerlock_worker') FROM (VALUES
  ('42501', 'CREATE TABLE ledgerlock.x (a int)'), ('42501', 'CREATE SCHEMA other'), ('42501', 'CREATE ROLE other'),
  ('42501', 'DROP SCHEMA ledgerlock CASCADE'), ('42501', 'CREATE FUNCTION ledgerlock.x() RETURNS int LANGUAGE sql RETURN 1'),
  ('42501', 'SET ROLE ledgerlock_owner'), ('42501', 'CREATE TEMP TABLE x (a int)'), ('1', 'SELECT 1 FROM schema_migrations LIMIT 1'),
  ('true', 'next_token(0) > 0'), ('true', $$report_audit(1, 66, '[]') IS NOT NULL$$),
  ('true', $$log_incident('user:1', 1, 'w', 'lost', 'apply', NULL, '', 0) IS NOT NULL$$)) AS v (state, statement);
ROLLBACK;

-- More than the functions above no role may call.
BEGIN; SELECT t.test('each_role_does_its_own_work');
:shop
SELECT t.would(answer, call, who || ': ' || call, 'ledgerlock_' || who) FROM (VALUES
  ('shop', '2', $$place_order(1, 'k', t.lines('A1'))$$), ('shop', 'pending', 'state FROM order_status(1, 1)'), ('cashier', '1100', $$deposit(1, 'USD', 100, 'k')$$),
  ('warehouse', '11', $$receive_stock('A', '1', 1)$$), ('support', 'true', 'cancel_subscription(1, 1) > now()'), ('support', 'false', 'resume_subscription(1, 1)'),
  ('support', '0', $$count(*) FROM release_rows('orders', '{1}') AS a, release_rows('billing', '{1}') AS b$$), ('support', 'pending', 'state FROM order_status(1, 1)'),
  ('support', '1000', 'balance_minor FROM users'), ('reader', '1000', 'balance_minor FROM users')) AS v (who, answer, call);
ROLLBACK;

-- A function of the owner runs as the owner, also for a worker that says it repairs.
BEGIN; SELECT t.test('worker_cannot_repair_through_a_function');
:shop
CREATE FUNCTION mend() RETURNS void LANGUAGE sql SECURITY DEFINER SET search_path = ledgerlock AS 'UPDATE wallet_entries SET at = at';
ALTER FUNCTION mend OWNER TO ledgerlock_owner;
GRANT EXECUTE ON FUNCTION mend TO ledgerlock_worker;
SET LOCAL ledgerlock.repair = on;
SELECT t.would('23001', 'mend()', NULL, 'ledgerlock_worker');
SELECT t.would(NULL, 'mend()', 'the owner can', 'ledgerlock_owner');
ROLLBACK;

SELECT t.done(100);
