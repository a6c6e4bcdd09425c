-- balance, orders_of, order_by_key, subscriptions_of, charges_of, decisions_since and decisions_from: what the page of a customer shows, to
-- the role of a web shop. User 1 has two subscriptions and three orders, user 2 one of each; user 3 is closed.
\set shop 'SELECT t.sku(65, ''A'', 10, 250), t.user(1, 1000), t.user(2, 1000), t.user(3); UPDATE users SET closed_at = now() WHERE user_id = 3; SELECT subscribe(u, p, 100, ''USD'', ''day'', 1, now() - interval ''1 hour'', 0, p) FROM (VALUES (1, ''gold''), (1, ''silver''), (2, ''gold'')) AS v (u, p); SELECT t.order(u, ''A1 A2'', k, now()) FROM (VALUES (1, ''a''), (1, ''b''), (1, ''c''), (2, ''a'')) AS v (u, k);'
SELECT no_plan();

-- Guarantee: The role of a web shop reads the wallet, the orders, the subscriptions and the charges of the user that it names, and of nobody
-- else.
BEGIN; SELECT t.test('page_of_a_customer');
:shop
SELECT t.says(answer, query, words, 'ledgerlock_shop') FROM (VALUES
  ('1000 USD true', $$concat_ws(' ', balance_minor, currency, (closed_at IS NULL)::text) FROM balance(1)$$, 'the wallet'),
  ('0 true', $$concat_ws(' ', balance_minor, (closed_at IS NOT NULL)::text) FROM balance(3)$$, 'a closed account'),
  ('c,b,a', $$string_agg(idempotency_key, ',') FROM orders_of(1)$$, 'orders, the newest first'),
  ('c,b', $$string_agg(idempotency_key, ',') FROM orders_of(1, NULL, 2)$$, 'the first page of them'),
  ('a', $$string_agg(idempotency_key, ',') FROM orders_of(1, 2, 2)$$, 'the page behind an order'),
  ('[{"qty": 3, "sku": "A", "unit_price_minor": 250}]', $$DISTINCT lines::text FROM orders_of(1)$$, 'the lines of an order'),
  ('2 pending 750 USD', $$concat_ws(' ', order_id, state, total_minor, currency) FROM order_by_key(1, 'b')$$, 'the order of a key'),
  ('4', $$order_id FROM order_by_key(2, 'a')$$, 'the order of that key of another user'),
  ('2 silver 100 active 0,1 gold 100 active 0',
   $$string_agg(concat_ws(' ', subscription_id, plan, amount_minor, state, next_period_no), ',') FROM subscriptions_of(1)$$, 'the subscriptions'),
  ('0', $$count(*) FROM charges_of(2, 1)$$, 'the charges of another user')) AS v (answer, query, words);
ROLLBACK;

-- As terms_of says, before new terms and in them.
BEGIN; SELECT t.test('page_has_the_terms_of_the_next_period');
:shop
CREATE VIEW t.both AS
  SELECT s.next_period_no || ' ' || (s.plan, s.quantity, s.unit_price_minor, s.amount_minor)::text AS page,
         s.next_period_no || ' ' || (o.plan, o.quantity, o.unit_minor, o.amount_minor)::text AS terms
    FROM subscriptions_of(1) AS s, terms_of(s.subscription_id, s.next_period_no) AS o WHERE s.subscription_id = 1;
SELECT t.says('true', $$set_terms(1, 1, 2, 'duo', 2, 70) IS NOT NULL$$);
SELECT is(page, terms, 'before period 0') FROM t.both;
SELECT t.says('true', 'pause_subscription(1, 1, 1, 0) > now()');
SELECT is(page, terms, 'before period 1') FROM t.both;
SELECT t.says('true', 'pause_subscription(1, 1, 1, 1) > now()');
SELECT is(page, terms, 'before period 2') FROM t.both;
SELECT is(page, '2 (duo,2,70,140)', 'the new terms') FROM t.both;
ROLLBACK;

-- A free period, one that is skipped, and one that nobody can pay.
BEGIN; SELECT t.test('page_has_the_charges_in_pages');
:shop
SELECT t.says('0', $$withdraw(1, 'USD', 1000, 'asked for', 'w')$$);
SELECT t.says('4', $$subscribe(1, 'trial', 100, 'USD', 'day', 1, now() - interval '23 hours', 1, 't')$$);
SELECT is(t.bill(), '2 captured, 2 declined', 'all are tried');
SELECT t.says('true', 'pause_subscription(1, 4, 1, 1) > now()');
SELECT t.says(answer, format($$string_agg(concat_ws(' ', period_no, state, amount_minor, currency, tries), ',') FROM charges_of(%s)$$, arguments),
              format('charges_of(%s)', arguments), 'ledgerlock_shop') FROM (VALUES
  ('1 skipped 100 USD 0,0 captured 0 USD 1', '1, 4'), ('1 skipped 100 USD 0', '1, 4, NULL, 1'), ('0 captured 0 USD 1', '1, 4, 1, 1'),
  ('0 declined 100 USD 1', '1, 1')) AS v (answer, arguments);
ROLLBACK;

CREATE TEMP TABLE calls (rows text, call text);
INSERT INTO calls VALUES
  ('1', 'balance(1)'), ('0', 'balance(NULL)'), ('0', 'balance(99)'),
  ('3', 'orders_of(1)'), ('0', 'orders_of(1, 1)'), ('0', 'orders_of(NULL)'), ('0', 'orders_of(99)'),
  ('LL002', 'orders_of(1, NULL, NULL)'), ('LL002', 'orders_of(1, NULL, 0)'), ('LL002', 'orders_of(1, NULL, 1001)'),
  ('1', $$order_by_key(1, 'a')$$), ('0', 'order_by_key(1, NULL)'), ('0', $$order_by_key(1, '')$$), ('0', $$order_by_key(2, 'b')$$),
  ('2', 'subscriptions_of(1)'), ('0', 'subscriptions_of(NULL)'), ('0', 'subscriptions_of(99)'),
  ('1', 'charges_of(2, 3)'), ('0', 'charges_of(2, 3, 0)'), ('0', 'charges_of(2, 3, -9223372036854775808)'),
  ('1', 'charges_of(2, 3, 9223372036854775807)'), ('0', 'charges_of(1, 3)'), ('0', 'charges_of(NULL, 3)'), ('0', 'charges_of(2, NULL)'),
  ('LL002', 'charges_of(2, 3, NULL, NULL)'), ('LL002', 'charges_of(2, 3, NULL, 0)'), ('LL002', 'charges_of(2, 3, NULL, 1001)'),
  ('LL002', $$decisions_since('')$$), ('LL002', $$decisions_since('yesterday')$$), ('LL002', $$decisions_since('7.1.1')$$),
  ('LL002', $$decisions_since('9999999999999999999')$$), ('LL002', $$decisions_since('99999999999')$$),
  ('LL002', 'decisions_since(NULL, NULL)'), ('LL002', 'decisions_since(NULL, 0)'), ('LL002', 'decisions_since(NULL, 1001)'),
  ('1', 'decisions_from()'), ('LL002', 'decisions_from(NULL)'), ('LL002', $$decisions_from('infinity')$$),
  ('1', $$create_sku('N', 1, 'USD')$$), ('1', $$set_sku_price('A', 1, 250)$$), ('1', 'cancel_order(1, 1)');
\set answers 'SELECT t.bill(); SELECT t.says(rows, format(''count(*) FROM %s'', call), call) FROM calls;'

-- Guarantee: The functions of a shop answer alike at any isolation level, and an argument that is null, empty or unknown is an error or no
-- row.
BEGIN; SELECT t.test('shop_is_answered_alike_at_any_level');
:shop
:answers
ROLLBACK;
BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT t.test('shop_is_answered_alike_at_any_level');
:shop
:answers
ROLLBACK;
BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT t.test('shop_is_answered_alike_at_any_level');
:shop
:answers
ROLLBACK;

SELECT t.done(148);
