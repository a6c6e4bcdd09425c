-- Support and subscriptions, at each boundary of their periods. Subscription 1 of user 1, who has 10.00, costs 1.00 a month from
-- 2024-01-01 on; period 0 is paid.
SELECT no_plan();

CREATE FUNCTION pg_temp.is_now(p_state text, p_end text) RETURNS text LANGUAGE sql RETURN
  format('UPDATE subscriptions SET state = %L, cancel_at = %L;', p_state, p_end);
CREATE FUNCTION pg_temp.ends(p_end text) RETURNS text LANGUAGE sql RETURN format('UPDATE subscriptions SET cancel_at = %L;', p_end);
CREATE FUNCTION pg_temp.behind(p_state text, p_end text DEFAULT NULL) RETURNS text LANGUAGE sql RETURN
  'INSERT INTO charges SELECT 1, 1, 1, ''2024-02-01Z'', ''2024-03-01Z'', 100, ''declined'', 1, 1, ''w'', ''2024-02-01Z'';'
  || format('UPDATE subscriptions SET retries = 1, next_due_at = ''2024-03-10Z'', state = %L, cancel_at = %L;', p_state, p_end);
CREATE FUNCTION pg_temp.second(p_amount bigint, p_due text) RETURNS text LANGUAGE sql RETURN
  'INSERT INTO subscriptions (subscription_id, user_id, plan, amount_minor, currency, anchor_at, unit, next_due_at, state, retries)'
  || format(' VALUES (2, 1, ''q'', %s, ''USD'', ''2024-02-01Z'', ''month'', %L, ''past_due'', 1);', p_amount, p_due)
  || format('INSERT INTO charges VALUES (2, 0, 1, ''2024-02-01Z'', ''2024-03-01Z'', %s, ''declined'', 1, 1, ''w'', ''2024-02-01Z'');', p_amount);
CREATE FUNCTION pg_temp.with_order(p_state text) RETURNS text LANGUAGE sql RETURN
  'INSERT INTO orders (user_id, idempotency_key, request_hash, state, total_minor, currency, placed_at)'
  || format(' VALUES (1, ''k'', '''', %L, 0, ''USD'', ''2024-01-01Z'');', p_state);
CREATE FUNCTION pg_temp.empty() RETURNS text LANGUAGE sql RETURN 'UPDATE users SET balance_minor = 0;';

-- A call behind these statements: its answer or SQLSTATE; then state, next period, its time and end of the subscription; then the periods
-- from 1 on. All is undone.
CREATE FUNCTION pg_temp.then(p_before text, p_call text, p_answer text, p_stands text, p_open text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  v_is text;
BEGIN
  BEGIN
    EXECUTE p_before;
    v_is := (t.ask(p_call, session_user::text, false)).answer;
    SELECT v_is || ' | ' || concat_ws(' ', state, next_period_no, to_char(next_due_at, 'MM-DD'), to_char(cancel_at, 'MM-DD')) || ' | '
           || coalesce((SELECT string_agg(state || ' ' || amount_minor, ', ' ORDER BY period_no) FROM charges WHERE subscription_id = 1 AND period_no > 0), '')
      INTO v_is FROM subscriptions WHERE subscription_id = 1;
    RAISE EXCEPTION SQLSTATE 'TUNDO';
  EXCEPTION WHEN SQLSTATE 'TUNDO' THEN NULL;
  END;
  RETURN is(v_is, concat_ws(' | ', p_answer, p_stands, p_open), p_call || CASE WHEN p_before = '' THEN '' ELSE ' behind ' || p_before END);
END $$;

-- Guarantee: Support changes the period that is running at the time of the call: a period that begins at an end is not owed, and a period
-- that begins a microsecond before the end is.
BEGIN; SELECT t.test('support_acts_at_each_boundary');
SELECT make_months('2024-04-01Z', '2024-06-01Z'), t.user(1, 1000), t.subscription(1, 1, 100, '2024-01-01Z');
INSERT INTO charges SELECT 1, 0, 1, anchor_at, '2024-02-01Z', 100, 'captured', 1, 1, 'w', anchor_at FROM subscriptions;
UPDATE subscriptions SET next_period_no = 1, next_due_at = '2024-02-01Z';

SELECT pg_temp.then(before, format($$cancel_subscription(1, 1, p_at => %L)::date$$, at), answer, stands, open) FROM (VALUES
  ('', '2024-01-15Z', '2024-02-01', 'active 1 02-01 02-01', ''),
  ('', '2024-01-31 23:59:59.999999Z', '2024-02-01', 'active 1 02-01 02-01', ''),
  ('', '2024-02-01Z', '2024-03-01', 'active 1 02-01 03-01', ''),
  ('', '2023-12-20Z', '2024-02-01', 'active 1 02-01 02-01', ''),
  (pg_temp.ends('2024-02-01Z'), '2024-06-15Z', '2024-02-01', 'active 1 02-01 02-01', ''),
  (pg_temp.ends('2024-06-01Z'), '2024-01-15Z', '2024-02-01', 'active 1 02-01 02-01', ''),
  (pg_temp.is_now('cancelled', '2024-02-01Z'), '2024-06-15Z', '2024-02-01', 'cancelled 1 02-01 02-01', ''),
  (pg_temp.behind('past_due'), '2024-02-20Z', '2024-03-01', 'past_due 1 03-10 03-01', 'declined 100'),
  (pg_temp.is_now('parked', NULL), '2024-02-20Z', '2024-03-01', 'parked 1 02-01 03-01', '')) AS v (before, at, answer, stands, open);

SELECT pg_temp.then(before, $$cancel_subscription(1, 1, 'now', '2024-02-20Z')::date$$, answer, stands, open) FROM (VALUES
  ('', '2024-02-01', 'cancelled 1 02-01 02-01', ''),
  (pg_temp.ends('2024-06-01Z'), '2024-02-01', 'cancelled 1 02-01 02-01', ''),
  (pg_temp.ends('2024-01-15Z'), '2024-01-15', 'cancelled 1 02-01 01-15', ''),
  (pg_temp.is_now('cancelled', '2024-01-15Z'), '2024-01-15', 'cancelled 1 02-01 01-15', ''),
  (pg_temp.behind('unpaid'), '2024-02-01', 'cancelled 1 03-10 02-01', 'declined 100')) AS v (before, answer, stands, open);

SELECT pg_temp.then(before, format($$resume_subscription(1, 1, %L, %L)$$, policy, at), answer, stands, open) FROM (VALUES
  (pg_temp.behind('past_due'), 'forgive', '2024-06-15Z', 'false', 'past_due 1 03-10', 'declined 100'),
  ('', 'forgive', '2024-06-15Z', 'false', 'active 1 02-01', ''),
  (pg_temp.is_now('cancelled', '2024-02-01Z'), 'forgive', '2024-06-15Z', 'false', 'cancelled 1 02-01 02-01', ''),
  (pg_temp.behind('unpaid'), 'forgive', '2024-02-20Z', 'true', 'past_due 1 02-20', 'declined 100'),
  (pg_temp.behind('unpaid'), 'forgive', '2024-02-29 23:59:59.999999Z', 'true', 'past_due 1 02-29', 'declined 100'),
  (pg_temp.behind('unpaid'), 'forgive', '2024-03-01Z', 'true', 'active 2 03-01', 'waived 100'),
  (pg_temp.is_now('parked', NULL), 'forgive', '2024-04-15Z', 'true', 'active 3 04-01', 'waived 100, waived 100'),
  (pg_temp.behind('parked'), 'forgive', '2024-04-15Z', 'true', 'active 3 04-01', 'waived 100, waived 100'),
  (pg_temp.behind('unpaid', '2024-03-01Z'), 'forgive', '2024-06-15Z', 'true', 'active 2 03-01 03-01', 'waived 100'),
  (pg_temp.behind('unpaid', '2024-03-15Z'), 'forgive', '2024-06-15Z', 'true', 'active 3 04-01 03-15', 'waived 100, waived 100'),
  ('SELECT set_terms(1, 1, 2, ''r'', 1, 70);' || pg_temp.is_now('parked', NULL), 'forgive', '2024-04-15Z', 'true', 'active 3 04-01', 'waived 100, waived 70'),
  (pg_temp.behind('unpaid'), 'bill_all', '2024-03-05Z', 'true', 'past_due 1 03-05', 'declined 100'),
  (pg_temp.is_now('parked', NULL), 'bill_all', '2024-04-15Z', 'true', 'active 1 02-01', '')) AS v (before, policy, at, answer, stands, open);

SELECT pg_temp.then(before, format($$pause_subscription(1, 1, %s, 1)::date$$, periods), answer, stands, open) FROM (VALUES
  (pg_temp.ends('2024-03-01Z'), 1, '2024-03-01', 'active 2 03-01 03-01', 'skipped 100'),
  (pg_temp.ends('2024-03-01Z'), 2, 'LL003', 'active 1 02-01 03-01', ''),
  (pg_temp.ends('2024-03-01 00:00:00.000001Z'), 2, '2024-04-01', 'active 3 04-01 03-01', 'skipped 100, skipped 100'),
  ('SELECT set_terms(1, 1, 2, ''r'', 1, 70)', 2, '2024-04-01', 'active 3 04-01', 'skipped 100, skipped 70'),
  ('', 1001, 'LL002', 'active 1 02-01', ''),
  (pg_temp.is_now('parked', NULL), 1, 'LL003', 'parked 1 02-01', ''),
  (pg_temp.behind('unpaid'), 1, 'LL003', 'unpaid 1 03-10', 'declined 100'),
  (pg_temp.is_now('cancelled', '2024-06-01Z'), 1, 'LL003', 'cancelled 1 02-01 06-01', '')) AS v (before, periods, answer, stands, open);

SELECT pg_temp.then(pg_temp.behind('unpaid'), $$set_terms(1, 1, 1, 'r', 1, 70)$$, 'LL002', 'unpaid 1 03-10', 'declined 100');
SELECT pg_temp.then(before, format($$change_now(1, 1, 'r', 1, %s, 'k', %L)$$, amount, at), answer, stands, '') FROM (VALUES
  ('', 200, '2024-01-01Z', '100', 'active 1 02-01'),
  ('', 200, '2023-12-31 23:59:59.999999Z', 'LL003', 'active 1 02-01'),
  ('', 200, '2024-01-31 23:59:59.999999Z', '0', 'active 1 02-01'),
  ('', 200, '2024-02-01Z', 'LL003', 'active 1 02-01'),
  (pg_temp.is_now('parked', NULL), 200, '2024-01-15Z', 'LL003', 'parked 1 02-01'),
  ($$SELECT change_now(1, 1, 'r', 1, 200, 'a', '2024-01-01Z'), change_now(1, 1, 'r', 1, 50, 'b', '2024-01-01Z')$$, 150, '2024-01-01Z', '100', 'active 1 02-01'))
  AS v (before, amount, at, answer, stands);

SELECT pg_temp.then(before, $$write_off(1, 1, 1, 'gone', 'k', '2024-03-05Z')$$, answer, stands, open) FROM (VALUES
  (pg_temp.behind('past_due'), '100', 'active 2 03-01', 'written_off 100'),
  (pg_temp.behind('unpaid'), '100', 'active 2 03-01', 'written_off 100'),
  (pg_temp.behind('parked'), 'LL003', 'parked 1 03-10', 'declined 100'),
  (pg_temp.behind('cancelled', '2024-06-01Z'), 'LL003', 'cancelled 1 03-10 06-01', 'declined 100'),
  (pg_temp.behind('unpaid', '2024-02-01Z'), 'LL003', 'unpaid 1 03-10 02-01', 'declined 100'),
  (pg_temp.behind('unpaid', '2024-02-01 00:00:00.000001Z'), '100', 'active 2 03-01 02-01', 'written_off 100')) AS v (before, answer, stands, open);

SELECT pg_temp.then(pg_temp.empty() || before, format($$deposit(1, 'USD', %s, 'k', %L)$$, amount, at), amount::text, stands, 'declined 100') FROM (VALUES
  (pg_temp.behind('past_due'), 100, '2024-02-20Z', 'past_due 1 02-20'),
  (pg_temp.behind('past_due'), 99, '2024-02-20Z', 'past_due 1 03-10'),
  (pg_temp.behind('past_due'), 100, '2024-03-20Z', 'past_due 1 03-10'),
  (pg_temp.behind('past_due'), 100, '2024-01-20Z', 'past_due 1 02-01'),
  (pg_temp.behind('past_due') || pg_temp.second(500, '2024-03-01Z'), 100, '2024-02-20Z', 'past_due 1 02-20'),
  (pg_temp.behind('past_due') || pg_temp.second(60, '2024-03-01Z'), 100, '2024-02-20Z', 'past_due 1 03-10'),
  (pg_temp.behind('unpaid') || pg_temp.second(60, '2024-03-11Z'), 200, '2024-02-20Z', 'unpaid 1 03-10'),
  (pg_temp.behind('parked') || pg_temp.second(60, '2024-03-11Z'), 200, '2024-02-20Z', 'parked 1 03-10')) AS v (before, amount, at, stands);

SELECT pg_temp.then(pg_temp.empty() || before, 'close_account(1) IS NOT NULL', answer, stands, open) FROM (VALUES
  (pg_temp.is_now('cancelled', '2024-02-01Z'), 'true', 'cancelled 1 02-01 02-01', ''),
  (pg_temp.is_now('cancelled', '2024-02-01Z') || pg_temp.with_order('pending'), 'LL003', 'cancelled 1 02-01 02-01', ''),
  (pg_temp.is_now('cancelled', '2024-02-01Z') || pg_temp.with_order('parked'), 'LL003', 'cancelled 1 02-01 02-01', ''),
  (pg_temp.is_now('cancelled', '2024-02-01Z') || pg_temp.with_order('cancelled'), 'true', 'cancelled 1 02-01 02-01', ''),
  (pg_temp.is_now('parked', NULL), 'LL003', 'parked 1 02-01', ''),
  (pg_temp.behind('unpaid'), 'LL003', 'unpaid 1 03-10', 'declined 100'),
  (pg_temp.ends('2024-02-01Z'), 'LL003', 'active 1 02-01 02-01', '')) AS v (before, answer, stands, open);
ROLLBACK;

SELECT t.done(63);
