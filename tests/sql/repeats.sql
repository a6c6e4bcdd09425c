-- A call whose answer was lost is made again with the same key, however late and whatever has become of the shop since, and is answered as at
-- first.
SELECT no_plan();

-- In the order in which they are made, by the owner, who may give any time; workers work behind the first eleven. With `now` the answer is
-- that of this moment.
CREATE TEMP TABLE calls (n serial, call text, now text, answer text);
INSERT INTO calls (call, now) VALUES
  ($$create_user('ann', 'USD')$$, NULL), ($$create_user('bob', 'USD')$$, NULL), ($$create_user('cid', 'USD')$$, NULL),
  ($$create_sku('C', 70, 'USD')$$, NULL),
  ($$deposit(1, 'USD', 5000, 'k', '2024-04-01 10:00Z')$$, 'balance_minor FROM users WHERE user_id = 1'),
  ($$subscribe(1, 'p', 100, 'USD', 'day', 10, '2024-04-01Z', 0, 'k')$$, NULL), ($$subscribe(2, 'p', 50, 'USD', 'day', 10, '2024-04-01Z', 0, 'k')$$, NULL),
  ($$subscribe(2, 'q', 60, 'USD', 'day', 10, '2024-04-01Z', 0, 'l')$$, NULL),
  ($$place_order(1, 'k', t.lines('A3'), '2024-04-02Z')$$, NULL), ($$place_order(1, 'l', t.lines('A2'), '2024-04-02Z')$$, NULL),
  ($$place_order(1, 'm', t.lines('NEW2'), '2024-04-02Z')$$, NULL),
  ($$refund(1, 'charge', 1, 0, 30, 'late', 'k', '2024-04-05 12:00Z')$$, NULL), ($$refund(1, 'charge', 1, 0, NULL, 'late', 'l', '2024-04-05 12:00Z')$$, NULL),
  ($$void_entry(1, 'payment', 2, 0, 'never', 'v', '2024-04-05 12:00Z')$$, NULL), ($$return_units(1, 1, 'A', 1, 'broken', 'k', '2024-04-05 12:00Z')$$, NULL),
  ($$receive_stock('A', 'k', 5, '2024-04-05 12:00Z')$$, $$on_hand FROM stock WHERE sku = 'A'$$),
  ($$adjust_stock('A', -2, 'lost', 'k', '2024-04-05 12:00Z')$$, $$on_hand FROM stock WHERE sku = 'A'$$),
  ($$withdraw(1, 'USD', 100, 'asked for', 'k', '2024-04-05 12:00Z')$$, 'balance_minor FROM users WHERE user_id = 1'),
  ($$write_off(2, 2, 0, 'gone', 'k', '2024-04-05 12:00Z')$$, NULL), ($$change_now(1, 1, 'duo', 2, 80, 'k', '2024-04-05 12:00Z')$$, NULL),
  ($$set_terms(1, 1, 3, 'trio', 3, 50)$$, NULL), ($$set_price(1, 1, 4, 60)$$, NULL), ($$pause_subscription(1, 1, 1, 1)$$, NULL),
  ($$cancel_subscription(1, 1, p_at => '2024-05-25Z')$$, NULL), ($$close_account(3)$$, NULL);
CREATE FUNCTION pg_temp.make_all() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  v record;
BEGIN
  PERFORM make_months('2024-04-01Z', '2024-06-01Z');
  INSERT INTO stock (sku, initial_qty, on_hand, unit_price_minor, currency) VALUES ('A', 100, 100, 70, 'USD'), ('B', 100, 100, 70, 'USD');
  FOR v IN SELECT * FROM calls ORDER BY n LOOP
    IF v.n = 12 THEN
      PERFORM t.bill('2024-04-05Z'), t.serve('2024-04-05Z');
    END IF;
    v.answer := (t.ask(v.call, session_user::text, false)).answer;
    UPDATE calls SET answer = v.answer WHERE n = v.n;
  END LOOP;
END $$;
CREATE FUNCTION pg_temp.totals() RETURNS text LANGUAGE sql AS $$
  SELECT concat_ws(' ', (SELECT concat_ws('/', count(*), sum(amount_minor), sum(tries)) FROM charges),
                   (SELECT concat_ws('/', sum(next_period_no), sum(retries)) FROM subscriptions),
                   (SELECT concat_ws('/', count(*), sum(amount_minor)) FROM ledger), (SELECT concat_ws('/', count(*), sum(qty)) FROM stock_ledger),
                   (SELECT sum(balance_minor) FROM users), (SELECT sum(on_hand) FROM stock), (SELECT count(*) FROM orders),
                   (SELECT count(*) FROM subscription_terms)) $$;
-- All of them once more, by a client: which are answered otherwise, and whether anything moved.
CREATE FUNCTION pg_temp.again(p_when text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  v_before text := pg_temp.totals();
  v_wrong  text := '';
  v_is     text;
  v        record;
BEGIN
  FOR v IN SELECT * FROM calls ORDER BY n LOOP
    IF v.now IS NOT NULL THEN
      EXECUTE 'SELECT ' || v.now INTO v.answer;
    END IF;
    v_is := (t.ask(v.call, 'ledgerlock_test_client', false)).answer;
    v_wrong := v_wrong || CASE WHEN v_is IS DISTINCT FROM v.answer THEN format('%s: %s and not %s; ', v.call, v_is, v.answer) ELSE '' END;
  END LOOP;
  RETURN is(v_wrong || pg_temp.totals(), v_before, 'all are answered as at first ' || p_when);
END $$;

-- Guarantee: A call that is repeated long after it was made is answered as at first, whatever became of prices, stock, subscriptions, wallets,
-- accounts and months.
BEGIN; SELECT t.test('repeated_call_is_answered_as_at_first');
SELECT pg_temp.make_all();
SELECT is(count(*), 0::bigint, 'each was answered') FROM calls WHERE answer IS NULL OR answer LIKE 'LL%';
SELECT pg_temp.again('much later');
UPDATE stock SET unit_price_minor = 9223372036854775807;
INSERT INTO stock (sku, initial_qty, on_hand, unit_price_minor, currency) VALUES ('NEW', 1, 1, 9223372036854775807, 'EUR');
SELECT pg_temp.again('when the prices changed');
SELECT adjust_stock('A', -on_hand, 'sold', 'all') FROM stock WHERE sku = 'A';
SELECT pg_temp.again('when the stock is gone');
SELECT park_rows('billing', '{1,2,3}', 9, 'w', 'why');
SELECT pg_temp.again('when the subscriptions are parked');
SELECT release_rows('billing', '{1,2,3}');
SELECT pg_temp.again('when they are released');
SELECT t.bill('2024-07-01Z');
SELECT pg_temp.again('when later periods are worked');
SELECT cancel_subscription(user_id, subscription_id, 'now') FROM subscriptions;
SELECT pg_temp.again('when the subscriptions are over');
SELECT withdraw(1, 'USD', balance_minor, 'all', 'all') FROM users WHERE user_id = 1;
SELECT pg_temp.again('when the wallet is empty');
SELECT close_account(1), close_account(2);
SELECT pg_temp.again('when the accounts are closed');
SELECT close_month(month) FROM (SELECT month FROM months WHERE month < '2024-06-01' ORDER BY month) AS over;
SELECT pg_temp.again('when the months are closed');
SELECT t.sound();
ROLLBACK;

-- Guarantee: A key that was used is refused for anything else, and the key of another user, SKU or function, or of a write-off of another subscription, is another one.
BEGIN; SELECT t.test('key_that_was_used_is_no_key_for_another_call');
SELECT pg_temp.make_all(), t.subscription(9, 1, 100, '2024-04-01Z');
SELECT t.says(answer, call) FROM (VALUES
  ('LL001', $$create_user('ann', 'EUR')$$), ('LL001', $$create_sku('C', 71, 'USD')$$), ('LL001', $$create_sku('C', 70, 'EUR')$$),
  ('LL001', $$deposit(1, 'USD', 5001, 'k')$$), ('7', $$deposit(2, 'USD', 7, 'k')$$),
  ('LL001', $$place_order(1, 'k', t.lines('A4'))$$), ('LL001', $$place_order(1, 'k', t.lines('B3'))$$),
  ('LL001', $$subscribe(1, 'q', 100, 'USD', 'day', 10, '2024-04-01Z', 0, 'k')$$), ('LL001', $$subscribe(1, 'p', 101, 'USD', 'day', 10, '2024-04-01Z', 0, 'k')$$),
  ('LL001', $$subscribe(1, 'p', 100, 'USD', 'week', 10, '2024-04-01Z', 0, 'k')$$), ('LL001', $$subscribe(1, 'p', 100, 'USD', 'day', 11, '2024-04-01Z', 0, 'k')$$),
  ('LL001', $$subscribe(1, 'p', 100, 'USD', 'day', 10, '2024-04-02Z', 0, 'k')$$), ('LL001', $$subscribe(1, 'p', 100, 'USD', 'day', 10, '2024-04-01Z', 1, 'k')$$),
  ('LL001', $$refund(1, 'payment', 1, 0, 30, 'late', 'k')$$), ('LL001', $$refund(1, 'charge', 2, 0, 30, 'late', 'k')$$),
  ('LL001', $$refund(1, 'charge', 1, 1, 30, 'late', 'k')$$), ('LL001', $$refund(1, 'charge', 1, 0, 31, 'late', 'k')$$),
  ('3', $$refund(1, 'payment', 1, 0, 3, 'late', 'v')$$), ('LL001', $$void_entry(1, 'charge', 2, 0, 'never', 'v')$$),
  ('LL001', $$void_entry(1, 'payment', 1, 0, 'never', 'v')$$), ('LL001', $$void_entry(1, 'payment', 2, 1, 'never', 'v')$$),
  ('LL001', $$return_units(1, 2, 'A', 1, 'broken', 'k')$$), ('LL001', $$return_units(1, 1, 'B', 1, 'broken', 'k')$$),
  ('LL001', $$return_units(1, 1, 'A', 2, 'broken', 'k')$$), ('LL001', $$receive_stock('A', 'k', 6)$$), ('105', $$receive_stock('B', 'k', 5)$$),
  ('LL001', $$adjust_stock('A', -1, 'lost', 'k')$$), ('103', $$adjust_stock('B', -2, 'lost', 'k')$$),
  ('LL001', $$withdraw(1, 'USD', 101, 'asked for', 'k')$$), ('true', $$withdraw(1, 'USD', 1, 'asked for', 'l') > 0$$),
  ('LL001', $$write_off(2, 2, 1, 'gone', 'k')$$), ('60', $$write_off(2, 3, 0, 'gone', 'k')$$),
  ('LL001', $$change_now(1, 1, 'dua', 2, 80, 'k')$$), ('LL001', $$change_now(1, 1, 'duo', 3, 80, 'k')$$), ('LL001', $$change_now(1, 1, 'duo', 2, 81, 'k')$$),
  ('LL001', $$change_now(1, 9, 'duo', 2, 80, 'k')$$),
  ('LL002', 'pause_subscription(1, 1, 2, 1)'), ('LL002', 'pause_subscription(1, 1, 1, 0)')) AS v (answer, call);
ROLLBACK;

SELECT t.done(50);
