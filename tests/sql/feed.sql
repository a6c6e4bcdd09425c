-- decisions_since and decisions_from: the feed of what was decided. Readers beside transactions that are open are told in
-- tests/verbs/test_decisions.c, a consumer beside a pool in tests/pool/test_feed.c.
-- Three units are for four orders; users 1 and 2 have 10.00, and user 3 nothing.
\set shop 'SELECT t.user(1, 1000), t.user(2, 1000), t.user(3), t.sku(65, ''A'', 3, 100);'
-- A transaction reads what it has decided itself when its numbers lie behind the end of the feed, as if it were committed.
\set committed 'UPDATE feed_base SET base = base + 1000000;'
SELECT no_plan();

-- All decisions behind a cursor, so many at a time; :cursor of the last one.
CREATE FUNCTION pg_temp.read_all(p_limit bigint, p_cursor text DEFAULT NULL, OUT told text, OUT next text) LANGUAGE plpgsql AS $$
DECLARE
  v_part text;
BEGIN
  next := p_cursor;
  LOOP
    SELECT string_agg(concat_ws(' ', decision, coalesce(idempotency_key, format('%s/%s/%s', subscription_id, period_no, try_no))), ', ' ORDER BY n),
           (array_agg(cursor ORDER BY n DESC))[1] INTO v_part, p_cursor
      FROM decisions_since(next, p_limit) WITH ORDINALITY
        AS d (cursor, decision, user_id, order_id, idempotency_key, subscription_id, period_no, try_no, amount_minor, currency, reason, next_try_at, at, n);
    EXIT WHEN v_part IS NULL;
    told := concat_ws(', ', told, v_part);
    next := p_cursor;
  END LOOP;
END $$;

-- User 3 can pay on the third try.
CREATE FUNCTION pg_temp.decide_everything() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM t.order(1, 'Z1', 'rejected-at-once', now()), t.order(1, 'A1', 'cancelled', now());
  PERFORM cancel_order(1, 2);
  PERFORM t.order(u, 'A1', k, now()) FROM (VALUES (1, 'a'), (2, 'b'), (1, 'c'), (2, 'd')) AS v (u, k);
  PERFORM subscribe(u, p, 300, 'USD', 'month', 1, now(), 0, p) FROM (VALUES (1, 'gold'), (3, 'lead')) AS v (u, p);
  PERFORM t.serve(), t.bill();
  FOR v_amount IN 1..300 BY 299 LOOP
    UPDATE subscriptions SET next_due_at = now() WHERE state = 'past_due';
    PERFORM deposit(3, 'USD', v_amount, v_amount::text);
    PERFORM t.bill();
  END LOOP;
END $$;

-- Guarantee: The feed has every order that is fulfilled, rejected or cancelled and every charge that is captured or declined, once, however many
-- are read at a time.
BEGIN; SELECT t.test('feed_has_each_decision_once');
:shop
SELECT pg_temp.decide_everything();
:committed
SELECT is((pg_temp.read_all(n)).told, 'order.rejected rejected-at-once, order.cancelled cancelled, order.fulfilled a, order.fulfilled b, order.fulfilled c, '
          'order.rejected d, charge.captured 1/0/1, charge.declined 2/0/1, charge.declined 2/0/2, charge.captured 2/0/3', n || ' at a time')
  FROM unnest('{1000,1,2,3,4}'::bigint[]) AS n;
SELECT is((pg_temp.read_all(9, (pg_temp.read_all(9)).next)).told, NULL, 'and nothing behind the last');
SELECT is((pg_temp.read_all(9, decisions_from('2020-01-01Z'))).told, (pg_temp.read_all(9)).told, 'the cursor of a time gives what was decided since');
SELECT is((pg_temp.read_all(9, decisions_from(clock_timestamp()))).told, NULL, 'and that of now nothing');
ROLLBACK;

BEGIN; SELECT t.test('decision_says_what_a_mail_needs');
:shop
SELECT pg_temp.decide_everything();
:committed
SELECT is(string_agg(format('%s %s %s %s %s %s', decision, user_id, extract(day FROM next_try_at - at), amount_minor, currency, reason), ';'),
  'order.rejected 1  0 USD unknown_sku;order.cancelled 1  100 USD ;order.fulfilled 1  100 USD ;order.fulfilled 2  100 USD ;order.fulfilled 1  100 USD ;'
  'order.rejected 2  100 USD out_of_stock;charge.captured 1  300 USD ;charge.declined 3 1 300 USD insufficient_funds;'
  'charge.declined 3 3 300 USD insufficient_funds;charge.captured 3  300 USD ', 'user, later try, amount and reason') FROM decisions_since();
SELECT ok(bool_and(at BETWEEN now() - interval '1 hour' AND now() AND num_nulls(order_id, subscription_id) = 1), 'time and row') FROM decisions_since();
ROLLBACK;

BEGIN; SELECT t.test('decline_without_a_further_try_says_so');
:shop
INSERT INTO retry_schedules (pauses_s) VALUES ('{1}');
SELECT t.subscription(1, 3, 300, now()), t.bill();
UPDATE subscriptions SET next_due_at = now();
SELECT t.bill();
:committed
SELECT is(array_agg(next_try_at IS NULL), '{f,t}', 'the second is the last') FROM decisions_since();
ROLLBACK;

-- A parked order is not decided; released and served it comes once.
BEGIN; SELECT t.test('parked_order_comes_when_it_is_decided');
:shop
SELECT t.order(1, 'A1', 'k', now()), park_rows('orders', '{1}', 5, 'w', 'why');
:committed
SELECT is((pg_temp.read_all(9)).told, NULL, 'parked');
SELECT resume_order(1, 1), t.serve();
:committed
SELECT is((pg_temp.read_all(9)).told, 'order.fulfilled k', 'served');
ROLLBACK;

SELECT t.done(13);
