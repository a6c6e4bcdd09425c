-- The words of the tests in this folder, in schema t: making users, SKUs, subscriptions and orders, asking as a client, and working
-- what is due by claim_* and apply_* themselves. The runner loads it once; each case is rolled back.
\set ON_ERROR_STOP on
SET client_min_messages = warning;
CREATE SCHEMA t;
GRANT USAGE ON SCHEMA t TO PUBLIC;
CREATE EXTENSION pgtap SCHEMA public;
ALTER DATABASE sql SET search_path = ledgerlock, public;
ALTER DATABASE sql SET timezone = 'UTC';
ALTER DATABASE sql SET client_min_messages = warning;
SET search_path = ledgerlock, public;
-- The months that most cases work in, without those to come, which migrate made: each more makes the audit slower, and a case makes
-- those that it needs besides.
SELECT make_months('2023-12-01Z', '2024-03-01Z'), make_months(now() - interval '3 days', now());
SET ledgerlock.repair = on;
SELECT format('DROP TABLE %I', to_char(month, '"charges_"YYYY_MM')) FROM months WHERE month > now() \gexec
DELETE FROM months WHERE month > now();
ALTER TABLE events DISABLE TRIGGER USER;
TRUNCATE events;
ALTER TABLE events ENABLE TRIGGER USER;
RESET ledgerlock.repair;

-- The name of a case: what follows is of it, up to the next name. Numbers of rows begin with 1 in each case.
CREATE FUNCTION t.test(p_name text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  PERFORM setval(oid::regclass, 1, false) FROM pg_class WHERE relnamespace = 'ledgerlock'::regnamespace AND relkind = 'S';
  RETURN '# case ' || p_name;
END $$;

-- The end of a file, which had so many assertions: a query without a row has made none. finish() of pgTAP has forgotten them,
-- since each case is rolled back.
CREATE FUNCTION t.done(p_assertions int) RETURNS text LANGUAGE sql RETURN '1..' || p_assertions;

-- ---- asking ----

-- The answer to a call or statement of somebody, or the SQLSTATE and the words of its error. With p_undo nothing of what it did is left.
CREATE FUNCTION t.ask(p_call text, p_who text, p_undo boolean, OUT answer text, OUT words text) LANGUAGE plpgsql AS $$
DECLARE
  v_me text := session_user;
BEGIN
  PERFORM set_config('session_authorization', p_who, true);
  BEGIN
    IF p_call ~ '^(INSERT|UPDATE|DELETE|TRUNCATE|CREATE|ALTER|DROP|SET) ' THEN
      EXECUTE p_call;
    ELSE
      EXECUTE CASE WHEN p_call ~ '^SELECT ' THEN '' ELSE 'SELECT ' END || p_call INTO answer;
    END IF;
    IF p_undo THEN
      RAISE EXCEPTION SQLSTATE 'TUNDO';
    END IF;
  EXCEPTION WHEN OTHERS THEN
    IF SQLSTATE <> 'TUNDO' THEN
      answer := SQLSTATE;
      words := SQLERRM;
    END IF;
  END;
  PERFORM set_config('session_authorization', v_me, true);
END $$;

CREATE FUNCTION t.answered(p_expected text, p_call text, p_words text, p_who text, p_undo boolean) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  v_is record;
BEGIN
  v_is := t.ask(p_call, p_who, p_undo);
  RETURN is(v_is.answer, p_expected, coalesce(p_words, p_call))
         || CASE WHEN v_is.answer IS DISTINCT FROM p_expected THEN E'\n' || diag(p_call, ': ', v_is.words) ELSE '' END;
END $$;

-- A client is answered so: a text, or the SQLSTATE of an error. A call that names no other statement is selected.
CREATE FUNCTION t.says(p_expected text, p_call text, p_words text DEFAULT NULL, p_who text DEFAULT 'ledgerlock_test_client')
RETURNS text LANGUAGE sql AS $$ SELECT t.answered(p_expected, p_call, p_words, p_who, false) $$;

-- The same, and what the call did is undone.
CREATE FUNCTION t.would(p_expected text, p_call text, p_words text DEFAULT NULL, p_who text DEFAULT 'ledgerlock_test_client')
RETURNS text LANGUAGE sql AS $$ SELECT t.answered(p_expected, p_call, p_words, p_who, true) $$;

-- A statement behind another one: its answer.
CREATE FUNCTION t.then(p_before text, p_call text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  v_answer text;
BEGIN
  EXECUTE p_before;
  EXECUTE p_call INTO v_answer;
  RETURN v_answer;
END $$;

-- ---- making ----

-- A time long ago, or now where no old row may be booked: in a transaction that is not READ COMMITTED.
CREATE FUNCTION t.past(p_at timestamptz) RETURNS timestamptz LANGUAGE sql AS $$
  SELECT CASE current_setting('transaction_isolation') WHEN 'read committed' THEN p_at ELSE now() END
$$;

-- A user with a wallet that a deposit filled.
CREATE FUNCTION t.user(p_id bigint, p_balance bigint DEFAULT 0, p_currency text DEFAULT 'USD') RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO users (user_id, currency) VALUES (p_id, p_currency);
  IF p_balance > 0 THEN
    PERFORM deposit(p_id, p_currency, p_balance, 'opening', t.past('2023-12-01Z'));
  END IF;
END $$;

CREATE FUNCTION t.sku(p_id bigint, p_sku text, p_qty bigint, p_price bigint, p_currency text DEFAULT 'USD') RETURNS void LANGUAGE sql AS $$
  INSERT INTO stock (sku_id, sku, initial_qty, on_hand, unit_price_minor, currency) VALUES (p_id, p_sku, p_qty, p_qty, p_price, p_currency)
$$;

-- A subscription that begins at its anchor: monthly, or every so many units.
CREATE FUNCTION t.subscription(
  p_id bigint, p_user bigint, p_amount bigint, p_anchor timestamptz, p_unit text DEFAULT 'month', p_every int DEFAULT 1)
RETURNS void LANGUAGE sql AS $$
  INSERT INTO subscriptions (subscription_id, user_id, plan, amount_minor, currency, anchor_at, unit, every, next_due_at)
  SELECT p_id, p_user, 'plan ' || p_id, p_amount, currency, p_anchor, p_unit, p_every, p_anchor FROM users WHERE user_id = p_user
$$;

-- 'A2 B5': two units of A and five of B.
CREATE FUNCTION t.lines(p_text text) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
  SELECT jsonb_agg(jsonb_build_object('sku', m[1], 'qty', m[2]::bigint) ORDER BY n)
    FROM regexp_matches(p_text, '([A-Z]+)([0-9]+)', 'g') WITH ORDINALITY AS r (m, n)
$$;

CREATE FUNCTION t.order(p_user bigint, p_lines text, p_key text, p_at timestamptz DEFAULT t.past('2024-01-01Z')) RETURNS bigint
LANGUAGE sql AS $$ SELECT place_order(p_user, p_key, t.lines(p_lines), p_at) $$;

-- A time to come that is the same all year, and never too far ahead to subscribe.
CREATE FUNCTION t.next_year() RETURNS timestamptz LANGUAGE sql STABLE RETURN date_trunc('year', now(), 'UTC') + interval '1 year';

-- ---- working ----

CREATE SEQUENCE t.tokens START 1000;

-- A transaction has one number in the feed of decisions; each batch of a case needs its own.
CREATE FUNCTION t.new_batch() RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
  UPDATE feed_base SET base = base + 1;
  RETURN nextval('t.tokens');
END $$;

-- Bills all that is due, batch after batch, as a run with one worker. Returns how many periods were captured and declined. Rows that are not
-- due are handed over, too: apply_charges leaves them alone, and so does apply_orders below.
CREATE FUNCTION t.bill(p_now timestamptz DEFAULT now()) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  v_token bigint;
  v_due   record;
  v_batch record;
  v_captured bigint := 0; v_declined bigint := 0;
BEGIN
  PERFORM keep_months(p_now, 0, 60000);
  LOOP
    SELECT array_agg(subscription_id) AS ids, array_agg(place) AS places, array_agg(user_id) AS users INTO v_due
      FROM (SELECT subscription_id, ctid AS place, user_id FROM subscriptions
             WHERE state IN ('active', 'past_due') ORDER BY next_due_at, subscription_id) AS due;
    EXIT WHEN v_due.ids IS NULL;
    v_token := t.new_batch();
    PERFORM claim_users(v_token, v_due.users);
    v_batch := apply_charges(v_token, 'w', p_now, v_due.ids, v_due.places, v_due.users, 1000);
    EXIT WHEN v_batch.captured + v_batch.declined + v_batch.planned + v_batch.cancelled = 0;
    v_captured := v_captured + v_batch.captured;
    v_declined := v_declined + v_batch.declined;
  END LOOP;
  RETURN format('%s captured, %s declined', v_captured, v_declined);
END $$;

-- Serves all orders that are due in one batch. Returns how many were fulfilled and rejected.
CREATE FUNCTION t.serve(p_now timestamptz DEFAULT now()) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  v_token bigint := t.new_batch();
  v_ids   bigint[] := ARRAY(SELECT order_id FROM orders WHERE state = 'pending' ORDER BY placed_at, order_id);
  v_batch record;
BEGIN
  PERFORM claim_users(v_token, ARRAY(SELECT user_id FROM orders WHERE order_id = ANY (v_ids)));
  PERFORM claim_stock(v_token, ARRAY(SELECT sku_id FROM order_lines WHERE order_id = ANY (v_ids)));
  v_batch := apply_orders(v_token, p_now, v_ids, 'w');
  RETURN format('%s fulfilled, %s rejected', v_batch.fulfilled, v_batch.rejected);
END $$;

-- Sends all attempts that are due under one token, which is told.
CREATE FUNCTION t.send(p_now timestamptz DEFAULT now(), p_form text DEFAULT 'form') RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  v_token bigint := t.new_batch();
BEGIN
  PERFORM claim_users(v_token, ARRAY(SELECT user_id FROM payments));
  PERFORM send_payments(v_token, 'w', p_now, ARRAY(SELECT payment_id FROM payments), 30000, p_form);
  RETURN v_token;
END $$;

-- The gateway answers so to what was sent under a token. The next call may follow at once.
CREATE FUNCTION t.answer(p_token bigint, p_outcome text, p_now timestamptz DEFAULT now(), p_reason text DEFAULT NULL) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
  v_ids bigint[] := ARRAY(SELECT payment_id FROM payments WHERE fence = p_token OR state = 'sent' ORDER BY payment_id);
  v_is  record;
BEGIN
  UPDATE feed_base SET base = base + 1;
  SELECT * INTO v_is FROM settle_payments('w', p_now, v_ids, ARRAY(SELECT p_token FROM unnest(v_ids)), ARRAY(SELECT p_outcome FROM unnest(v_ids)),
    ARRAY(SELECT 'pi_' || id FROM unnest(v_ids) AS id), ARRAY(SELECT p_reason FROM unnest(v_ids)), ARRAY(SELECT 0::bigint FROM unnest(v_ids)));
  RETURN format('%s settled, %s captured, %s declined', coalesce(cardinality(v_is.settled), 0), v_is.captured, v_is.declined);
END $$;

-- ---- the audit ----

CREATE TABLE t.invariants (name text PRIMARY KEY, sql text NOT NULL);
CREATE TABLE t.texts (name text PRIMARY KEY, sql text NOT NULL); -- of the folder audit

-- The invariants of the audit that are broken at a time. Work that is left breaks none unless it is older than the lag, and the schema is left out: a database of
-- tests has more.
CREATE FUNCTION t.broken(p_now timestamptz DEFAULT now(), p_lag text DEFAULT '1000 years') RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
  v_broken text[] := '{}';
  v_is     record;
  v_rows   bigint;
BEGIN
  PERFORM set_config('ledgerlock.now', p_now::text, true), set_config('ledgerlock.lag', p_lag, true),
          set_config('ledgerlock.sealed', 'on', true);
  FOR v_is IN SELECT * FROM t.invariants WHERE name <> 'schema_as_built' ORDER BY name LOOP
    EXECUTE format('SELECT count(*) FROM (%s) AS found', v_is.sql) INTO v_rows;
    IF v_rows > 0 THEN
      v_broken := v_broken || v_is.name;
    END IF;
  END LOOP;
  RETURN v_broken;
END $$;

CREATE FUNCTION t.sound(p_now timestamptz DEFAULT now()) RETURNS text LANGUAGE sql AS $$
  SELECT is(t.broken(p_now), '{}', 'every invariant holds')
$$;
