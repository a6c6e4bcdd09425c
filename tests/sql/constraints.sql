-- Each constraint, unique index, trigger and foreign key of the schema refuses a row, and so does each column that must have a value.
SELECT no_plan();

-- Two rows of each table, which differ in each column that may: so a key that was widened by one more refuses nothing.
CREATE FUNCTION pg_temp.fill() RETURNS void LANGUAGE plpgsql AS $fill$
BEGIN
  INSERT INTO users (user_id, external_ref, balance_minor, currency) VALUES (1, 'ann', 500, 'USD'), (2, 'bob', 600, 'EUR');
  INSERT INTO stock (sku_id, sku, initial_qty, on_hand, unit_price_minor, currency) VALUES (1, 'A', 10, 10, 250, 'USD'), (2, 'B', 20, 20, 300, 'USD');
  INSERT INTO subscriptions (subscription_id, user_id, plan, amount_minor, currency, anchor_at, unit, next_due_at)
  SELECT i, i, 'p' || i, 100 + i, CASE i WHEN 1 THEN 'USD' ELSE 'EUR' END, '2024-01-31Z', 'month', '2024-01-31Z' FROM generate_series(1, 2) AS i;
  PERFORM make_months('2023-11-01Z', '2024-03-02Z');
  INSERT INTO charges (subscription_id, period_no, user_id, period_start, period_end, amount_minor, state, tries, fence, worker, charged_at)
  SELECT i, 0, i, date '2024-01-31' + i, date '2024-02-29' + i, 100 + i, 'captured', i, i, 'w' || i, now() - i * interval '1 s' FROM generate_series(1, 2) AS i;
  PERFORM t.order(1, 'A1 B2', 'k1', now()), t.order(1, 'A1', 'k2', now());
  PERFORM receive_stock('A', '7', 5), deposit(1, 'USD', 100, 'a'), deposit(1, 'USD', 200, 'b', now() - interval '1 s');
  PERFORM pause_job('billing'), report_audit(1, 66, '[]');
  INSERT INTO payments (kind, source, leg, attempt_no, user_id, source_at, amount_minor, currency, customer, method, state, calls, first_sent_at,
                        due_at, reference, planned_fence, fence, worker, at)
  SELECT 'charge', i, i, i, i, date '2024-01-31' + i, 100 + i, CASE i WHEN 1 THEN 'USD' ELSE 'EUR' END, 'c' || i, 'm' || i, CASE i WHEN 1 THEN 'unknown' ELSE 'captured' END, i, now() - i * interval '1 s',
         now() + i * interval '1 s', 'pi' || i, i, i, 'w' || i, now() - i * interval '1 s' FROM generate_series(1, 2) AS i;
  INSERT INTO lock_incidents (resource, token, worker, kind, phase) VALUES ('user:1', 1, 'w', 'lost', 'x');
  INSERT INTO workers (pool, slot, job, host, pid, started_at, seen_at, counters)
  SELECT 'p', i, 'billing', 'h', i, now(), now() + i * interval '1 s', '{}' FROM generate_series(1, 2) AS i;
  INSERT INTO batches (job, token, worker, at, done, refused, ids, periods, feed_no) VALUES ('billing', 1, 'w', now(), 1, 0, '{1}', '{0}', 1);
  INSERT INTO events (event, order_id, user_id, state) VALUES ('parked', 1, 1, 'parked');
  INSERT INTO events (event, user_id) VALUES ('closed', 1);
  INSERT INTO events (event, subscription_id, user_id, idempotency_key, state, next_period_no, retries, next_due_at, from_period, amount_minor, reason) VALUES
    ('subscribed', 1, 1, 'k1', 'active', 0, 0, now(), NULL, NULL, NULL), ('written_off', 1, 1, 'w1', 'active', 0, 0, now(), 0, 5, 'r');
  INSERT INTO events (event, subscription_id, user_id, state, next_period_no, retries, next_due_at, try_no, amount_minor) VALUES
    ('declined', 1, 1, 'past_due', 0, 1, now(), 1, 5);
  INSERT INTO subscription_terms (subscription_id, from_period, plan, quantity, unit_minor) VALUES (1, 3, 'p', 2, 50);
  INSERT INTO wallet_entries (user_id, kind, idempotency_key, amount_minor, of_kind, of_source, of_leg, of_at, of_minor, before_minor, terms_id, old_minor, reason) VALUES
    (1, 'proration', 'p1', -1, 'charge', 1, 1, now(), 100, NULL, 1, 1, NULL), (1, 'refund', 'k1', 10, 'charge', 1, 0, now(), 101, 0, NULL, NULL, 'r'),
    (1, 'withdrawal', 'k2', -5, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'r');
  INSERT INTO stock_entries (sku_id, kind, idempotency_key, qty, user_id, order_id, sold_qty, before_qty, reason) VALUES
    (1, 'adjustment', 'a1', 5, NULL, NULL, NULL, NULL, 'r'), (1, 'adjustment', 'a2', -1, NULL, NULL, NULL, NULL, 'r'),
    (1, 'return', 'k1', 1, 1, 1, 5, 0, 'r'), (1, 'return', 'k2', 1, 1, 1, 5, 1, 'r');
  SET LOCAL ledgerlock.repair = on; -- only close_month writes the rest
  INSERT INTO seals (month, table_name, kind, currency, row_ct, total, checksum) VALUES ('2023-11-01', 'months', '', '', 0, 0, 0);
  INSERT INTO sealed_wallets VALUES (1, 'USD', 1);
  INSERT INTO sealed_stock VALUES (1, 1, 0, 0, 1);
  INSERT INTO sealed_batches VALUES (1, now(), 'w', 1);
END $fill$;

-- The guard that refuses a statement, which is undone: "table.constraint", "domain.constraint" or "table.trigger()". Of a partition the guard
-- of its table, unless it has one of its own.
CREATE FUNCTION pg_temp.refused_by(p_sql text, p_repair text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  v_state text; v_table text; v_guard text; v_words text; v_context text; v_domain text;
BEGIN
  PERFORM set_config('ledgerlock.repair', p_repair, true);
  SET CONSTRAINTS ALL IMMEDIATE;
  EXECUTE p_sql;
  RAISE EXCEPTION SQLSTATE 'TUNDO';
EXCEPTION WHEN OTHERS THEN
  GET STACKED DIAGNOSTICS v_state = RETURNED_SQLSTATE, v_table = TABLE_NAME, v_guard = CONSTRAINT_NAME, v_words = MESSAGE_TEXT,
                          v_context = PG_EXCEPTION_CONTEXT, v_domain = PG_DATATYPE_NAME;
  IF v_state = 'TUNDO' THEN
    RETURN NULL;
  ELSIF v_guard = 'month_is_closed' THEN
    RETURN v_table || '.' || v_guard;
  ELSIF v_guard <> '' THEN
    RETURN regexp_replace(concat(v_table, v_domain, '.', v_guard), '_[0-9]{4}_[0-9]{2}', '', 'g');
  ELSIF v_words ~ ' is refused: ' THEN
    v_guard := replace(substring(v_words FROM 'is refused: (.*)'), ' ', '_') || '()';
    v_table := substring(v_words FROM '^[A-Z]+ of ([a-z0-9_]+) ');
    RETURN CASE WHEN v_guard ~ 'changed|deleted' THEN regexp_replace(v_table, '_[0-9]{4}_[0-9]{2}', '') ELSE v_table END || '.' || v_guard;
  END IF; -- a trigger that is called as its function is
  RETURN (SELECT relname || '.' || tgname || '()' FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid
           WHERE tgname = substring(v_context FROM '^PL/pgSQL function (?:ledgerlock[.])?([a-z_]+)'));
END $$;

-- The row with key k1 once more, but for what the JSON says.
CREATE FUNCTION pg_temp.again(p_table text, p_but text) RETURNS text LANGUAGE sql RETURN
  format('INSERT INTO %1$s OVERRIDING SYSTEM VALUE SELECT (jsonb_populate_record(p, %2$L)).* FROM %1$s AS p WHERE idempotency_key = %3$L',
         p_table, p_but, 'k1');

-- The event of that name once more, but for what the JSON says: an event is never changed, not even to repair it.
CREATE FUNCTION pg_temp.event(p_event text, p_but text) RETURNS text LANGUAGE sql RETURN
  format('INSERT INTO events OVERRIDING SYSTEM VALUE SELECT (jsonb_populate_record(e, %L)).* FROM events AS e WHERE event = %L',
         '{"event_id": 999}'::jsonb || p_but::jsonb, p_event);

-- The first payment once more, but for what the JSON says.
CREATE FUNCTION pg_temp.payment(p_but text) RETURNS text LANGUAGE sql RETURN
  format('INSERT INTO payments (%1$s) OVERRIDING SYSTEM VALUE SELECT %1$s FROM (SELECT (jsonb_populate_record(p, %2$L)).* FROM payments AS p ORDER BY payment_id LIMIT 1) AS p',
         $$payment_id, kind, source, leg, attempt_no, user_id, source_at, amount_minor, currency, customer, method, state, calls, first_sent_at, due_at, reference, planned_fence, fence, worker, at$$, p_but);

-- A guard, and a statement that it alone refuses, also to a person who repairs by hand.
CREATE TEMP TABLE refusals (guard text, statement text);
INSERT INTO refusals VALUES
  ('users.card_is_whole', $$UPDATE users SET card_customer = 'c' WHERE user_id = 1$$),
  ('payments.payments_pkey', pg_temp.payment('{"leg": 7, "attempt_no": 7}')),
  ('payments.one_payment_per_attempt', pg_temp.payment('{"payment_id": 99, "state": "void"}')),
  ('payments.one_payment_may_hold', pg_temp.payment('{"payment_id": 99, "attempt_no": 9}')),
  ('payments.payment_kind_known', $$UPDATE payments SET kind = 'gift', leg = 0 WHERE user_id = 1$$),
  ('payments.payment_leg_of_kind', 'UPDATE payments SET leg = -1 WHERE user_id = 1'),
  ('payments.payment_leg_of_kind', $$UPDATE payments SET kind = 'refund' WHERE user_id = 1$$),
  ('payments.attempt_from_one', 'UPDATE payments SET attempt_no = 0 WHERE user_id = 1'),
  ('payments.payment_amount_positive', 'UPDATE payments SET amount_minor = 0 WHERE user_id = 1'),
  ('payments.payment_state_known', $$UPDATE payments SET state = 'asleep' WHERE user_id = 1$$),
  ('payments.calls_of_state', 'UPDATE payments SET calls = 0, first_sent_at = NULL WHERE user_id = 1'),
  ('payments.sent_has_its_time', 'UPDATE payments SET first_sent_at = NULL WHERE user_id = 1'),
  ('payments.payment_due_is_finite', $$UPDATE payments SET due_at = 'infinity' WHERE user_id = 1$$),
  ('payments.captured_has_its_reference', $$UPDATE payments SET state = 'captured', reference = NULL WHERE user_id = 1$$),
  ('payments.payment_is_finite', $$UPDATE payments SET at = 'infinity' WHERE user_id = 1$$),
  ('instance.one_instance', 'INSERT INTO instance (one) VALUES (false)'),
  ('instance.instance_pkey', 'INSERT INTO instance (one) VALUES (true)'),
  ('currency.currency_is_iso', $$UPDATE users SET currency = 'usd' WHERE user_id = 1$$),
  ('users.user_id_positive', 'UPDATE users SET user_id = 0 WHERE user_id = 1'),
  ('users.users_pkey', 'UPDATE users SET user_id = 1 WHERE user_id = 2'),
  ('users.users_external_ref_key', $$UPDATE users SET external_ref = 'ann' WHERE user_id = 2$$),
  ('users.balance_never_negative', 'UPDATE users SET balance_minor = -1 WHERE user_id = 1'),
  ('stock.sku_id_positive', 'UPDATE stock SET sku_id = 0 WHERE sku_id = 1'),
  ('stock.stock_pkey', 'UPDATE stock SET sku_id = 1 WHERE sku_id = 2'),
  ('stock.stock_sku_key', $$UPDATE stock SET sku = 'A' WHERE sku_id = 2$$),
  ('stock.initial_qty_not_negative', 'UPDATE stock SET initial_qty = -1 WHERE sku_id = 1'),
  ('stock.on_hand_never_negative', 'UPDATE stock SET on_hand = -1 WHERE sku_id = 1'),
  ('stock.held_is_on_hand', 'UPDATE stock SET held = -1 WHERE sku_id = 1'),
  ('stock.held_is_on_hand', 'UPDATE stock SET held = on_hand + 1 WHERE sku_id = 1'),
  ('stock.stock_price_not_negative', 'UPDATE stock SET unit_price_minor = -1 WHERE sku_id = 1'),
  ('subscriptions.subscription_id_positive', 'UPDATE subscriptions SET subscription_id = 0 WHERE subscription_id = 1'),
  ('subscriptions.subscriptions_pkey', 'UPDATE subscriptions SET subscription_id = 1 WHERE subscription_id = 2'),
  ('subscriptions.subscription_amount_not_negative', 'UPDATE subscriptions SET amount_minor = -1'),
  ('subscriptions.unit_known', $$UPDATE subscriptions SET unit = 'hour'$$),
  ('subscriptions.every_in_range', 'UPDATE subscriptions SET every = 0'),
  ('subscriptions.subscription_state_known', $$UPDATE subscriptions SET state = 'asleep'$$),
  ('subscriptions.subscription_period_positive', 'UPDATE subscriptions SET next_period_no = -1'),
  ('subscriptions.subscription_retries_positive', 'UPDATE subscriptions SET retries = -1'),
  ('subscriptions.anchor_is_finite', $$UPDATE subscriptions SET anchor_at = '-infinity'$$),
  ('subscriptions.due_is_finite', $$UPDATE subscriptions SET next_due_at = 'infinity'$$),
  ('subscriptions.cancel_is_finite', $$UPDATE subscriptions SET cancel_at = 'infinity'$$),
  ('subscriptions.behind_was_tried', $$UPDATE subscriptions SET state = 'past_due'$$),
  ('subscriptions.cancelled_has_its_date', $$UPDATE subscriptions SET state = 'cancelled'$$),
  ('contracts.one_subscription_per_contract', $$INSERT INTO subscriptions (subscription_id, user_id, plan, amount_minor, currency, anchor_at, unit, next_due_at) SELECT subscription_id + 10, user_id, plan, 7, currency, anchor_at, 'week', anchor_at FROM subscriptions$$),
  ('subscriptions.subscription_has_a_wallet', $$INSERT INTO subscriptions (subscription_id, user_id, plan, amount_minor, currency, anchor_at, unit, next_due_at) VALUES (9, 1, 'p', 100, 'EUR', '2024-01-31Z', 'month', '2024-01-31Z')$$),
  ('charges.one_charge_per_period', $$UPDATE charges SET subscription_id = 1, period_start = period_start - interval '1 day' WHERE subscription_id = 2$$),
  ('charges.charge_period_positive', 'UPDATE charges SET period_no = -1'),
  ('charges.period_ends_after_start', 'UPDATE charges SET period_end = period_start'),
  ('charges.charge_amount_of_state', 'UPDATE charges SET amount_minor = -1'),
  ('users.closed_account_is_empty', 'UPDATE users SET closed_at = now() WHERE user_id = 1'),
  ('events.one_subscription_per_key', pg_temp.event('subscribed', '{}')),
  ('events.one_write_off_per_key', pg_temp.event('written_off', '{"from_period": 1}')),
  ('events.one_write_off_per_period', pg_temp.event('written_off', '{"idempotency_key": "w2"}')),
  ('events.event_not_ahead', pg_temp.event('closed', '{"user_id": 2, "at": "2099-01-01Z"}')),
  ('events.write_off_has_its_reason', pg_temp.event('written_off', '{"amount_minor": null}')),
  ('events.events_are_never_changed()', 'DELETE FROM events'),
  ('events.event_known', pg_temp.event('parked', '{"event": "sung"}')),
  ('events.event_is_finite', pg_temp.event('closed', '{"at": "infinity"}')),
  ('events.event_has_one_subject', pg_temp.event('parked', '{"sku_id": 1}')),
  ('events.event_has_one_subject', pg_temp.event('parked', '{"order_id": null}')),
  ('events.event_has_its_user', pg_temp.event('parked', '{"user_id": null}')),
  ('events.event_has_its_state', pg_temp.event('subscribed', '{"retries": null}')),
  ('events.try_has_its_amount', pg_temp.event('declined', '{"try_no": null}')),
  ('events.try_has_its_amount', pg_temp.event('declined', '{"amount_minor": null}')),
  ('events.periods_are_named', pg_temp.event('written_off', '{"from_period": null}')),
  ('events.event_has_its_key', pg_temp.event('written_off', '{"idempotency_key": null}')),
  ('events.write_off_has_its_reason', pg_temp.event('written_off', '{"reason": " "}')),
  ('events.write_off_has_its_reason', pg_temp.event('written_off', '{"reason": null}')),
  ('events.one_closure_per_user', $$INSERT INTO events (event, user_id) VALUES ('closed', 1)$$),
  ('events.one_refund_per_orphan', $$INSERT INTO events (event, idempotency_key) VALUES ('orphan_refunded', 'pi_1'), ('orphan_refunded', 'pi_1')$$),
  ('events.one_event', $$INSERT INTO events OVERRIDING SYSTEM VALUE SELECT * FROM events WHERE event = 'declined'$$),
  ('wallet_entries.one_wallet_entry_per_key', pg_temp.again('wallet_entries', '{"entry_id": 99, "before_minor": 10}')),
  ('wallet_entries.one_wallet_entry_per_number', pg_temp.again('wallet_entries', '{"idempotency_key": "k3", "before_minor": 10}')),
  ('wallet_entries.one_correction_after_the_other', pg_temp.again('wallet_entries', '{"entry_id": 99, "idempotency_key": "k3"}')),
  ('wallet_entries.wallet_entry_has_a_user', $$UPDATE wallet_entries SET user_id = 99 WHERE idempotency_key = 'k2'$$),
  ('wallet_entries.wallet_entry_kind_known', $$UPDATE wallet_entries SET kind = 'gift' WHERE kind = 'refund'$$),
  ('wallet_entries.amount_has_sign_of_kind', $$UPDATE wallet_entries SET amount_minor = 0 WHERE kind = 'deposit'$$),
  ('wallet_entries.amount_has_sign_of_kind', $$UPDATE wallet_entries SET amount_minor = -amount_minor WHERE kind = 'refund'$$),
  ('wallet_entries.amount_has_sign_of_kind', $$UPDATE wallet_entries SET amount_minor = -amount_minor WHERE kind = 'withdrawal'$$),
  ('wallet_entries.entry_is_of_what_was_paid', $$UPDATE wallet_entries SET of_kind = 'deposit' WHERE kind = 'refund'$$),
  ('wallet_entries.entry_has_its_reason', $$UPDATE wallet_entries SET reason = ' ' WHERE kind = 'refund'$$),
  ('wallet_entries.entry_has_its_reason', $$UPDATE wallet_entries SET reason = NULL WHERE kind = 'withdrawal'$$),
  ('wallet_entries.entry_has_its_reason', $$UPDATE wallet_entries SET reason = 'r' WHERE kind = 'deposit'$$),
  ('wallet_entries.entry_names_what_it_is_of', $$UPDATE wallet_entries SET of_leg = NULL WHERE kind = 'refund'$$),
  ('wallet_entries.entry_names_what_it_is_of', $$UPDATE wallet_entries SET of_minor = 5 WHERE kind = 'deposit'$$),
  ('wallet_entries.entry_names_what_it_is_of', $$UPDATE wallet_entries SET before_minor = 0 WHERE kind = 'proration'$$),
  ('wallet_entries.proration_names_its_terms', $$UPDATE wallet_entries SET terms_id = NULL WHERE kind = 'proration'$$),
  ('wallet_entries.proration_is_of_a_charge', $$UPDATE wallet_entries SET of_kind = 'payment' WHERE kind = 'proration'$$),
  ('wallet_entries.return_is_of_a_payment', $$UPDATE wallet_entries SET kind = 'return' WHERE kind = 'refund'$$),
  ('wallet_entries.never_more_than_was_paid', $$UPDATE wallet_entries SET before_minor = 92 WHERE kind = 'refund'$$),
  ('wallet_entries.void_is_the_whole', $$UPDATE wallet_entries SET kind = 'void' WHERE kind = 'refund'$$),
  ('wallet_entries.wallet_entry_not_ahead', $$UPDATE wallet_entries SET at = recorded_at + interval '61 s'$$),
  ('stock_entries.one_stock_entry_per_number', pg_temp.again('stock_entries', '{"idempotency_key": "k3", "before_qty": 2}')),
  ('stock_entries.one_stock_entry_per_key', $$UPDATE stock_entries SET idempotency_key = 'a2' WHERE idempotency_key = 'a1'$$),
  ('stock_entries.one_return_per_key', $$UPDATE stock_entries SET idempotency_key = 'k2' WHERE kind = 'return' AND idempotency_key = 'k1'$$),
  ('stock_entries.one_return_after_the_other', $$UPDATE stock_entries SET before_qty = 1 WHERE kind = 'return' AND idempotency_key = 'k1'$$),
  ('stock_entries.stock_entry_has_a_sku', $$UPDATE stock_entries SET sku_id = 99 WHERE kind = 'delivery'$$),
  ('stock_entries.stock_entry_kind_known', $$UPDATE stock_entries SET kind = 'theft' WHERE kind = 'adjustment'$$),
  ('stock_entries.qty_has_sign_of_kind', $$UPDATE stock_entries SET qty = 0 WHERE kind = 'adjustment'$$),
  ('stock_entries.qty_has_sign_of_kind', $$UPDATE stock_entries SET qty = -1 WHERE kind = 'return'$$),
  ('stock_entries.cell_of_a_stock_entry', $$UPDATE stock_entries SET cell = 8192 WHERE kind = 'adjustment'$$),
  ('stock_entries.stock_entry_has_its_reason', $$UPDATE stock_entries SET reason = ' ' WHERE kind = 'adjustment'$$),
  ('stock_entries.stock_entry_has_its_reason', $$UPDATE stock_entries SET reason = NULL WHERE kind = 'return'$$),
  ('stock_entries.return_has_an_order', $$UPDATE stock_entries SET order_id = 99 WHERE kind = 'return'$$),
  ('stock_entries.return_names_its_order', $$UPDATE stock_entries SET order_id = NULL WHERE kind = 'return'$$),
  ('stock_entries.return_names_its_order', $$UPDATE stock_entries SET user_id = 1 WHERE kind = 'delivery'$$),
  ('stock_entries.never_more_than_was_sold', $$UPDATE stock_entries SET qty = 6 WHERE kind = 'return'$$),
  ('stock_entries.stock_entry_not_ahead', $$UPDATE stock_entries SET at = recorded_at + interval '61 s'$$),
  ('subscriptions.trial_in_range', 'UPDATE subscriptions SET trial_periods = 1001'),
  ('charges.charge_state_known', $$UPDATE charges SET state = 'lent'$$),
  ('charges.charge_tries_of_state', 'UPDATE charges SET tries = 0'),
  ('charges.unserved_is_as_it_says', $$UPDATE charges SET state = 'waived', charged_at = period_end - interval '1 s'$$),
  ('charges.charge_not_early', $$UPDATE charges SET charged_at = period_start - interval '1 s'$$),
  ('orders.order_id_positive', $$UPDATE orders SET order_id = 0 WHERE idempotency_key = 'k2'$$),
  ('orders.orders_pkey', 'UPDATE orders SET order_id = 1 WHERE order_id = 2'),
  ('orders.orders_user_id_idempotency_key_key', $$UPDATE orders SET idempotency_key = 'k1' WHERE idempotency_key = 'k2'$$),
  ('orders.order_state_known', $$UPDATE orders SET state = 'lost'$$),
  ('orders.order_reason_known', $$UPDATE orders SET state = 'rejected', decided_at = now(), fence = 1, reason = 'mood', skus = '{A}'$$),
  ('orders.paying_is_by_card', $$UPDATE orders SET state = 'paying' WHERE idempotency_key = 'k2'$$),
  ('orders.paying_is_by_card', $$UPDATE orders SET state = 'rejected', decided_at = now(), fence = 1, reason = 'card_declined' WHERE idempotency_key = 'k2'$$),
  ('orders.rejected_has_reason', $$UPDATE orders SET state = 'rejected', decided_at = now(), fence = 1$$),
  ('orders.shortage_names_skus', $$UPDATE orders SET state = 'rejected', decided_at = now(), fence = 1, reason = 'out_of_stock', skus = '{}'$$),
  ('orders.order_total_not_negative', 'UPDATE orders SET total_minor = -1'),
  ('orders.placed_is_finite', $$UPDATE orders SET placed_at = '-infinity'$$),
  ('orders.decided_has_its_time', $$UPDATE orders SET state = 'fulfilled', fence = 1$$),
  ('orders.decided_after_placed', $$UPDATE orders SET state = 'fulfilled', fence = 1, decided_at = placed_at - interval '1 s'$$),
  ('orders.decision_has_its_token', $$UPDATE orders SET state = 'fulfilled', decided_at = now()$$),
  ('orders.order_has_a_wallet', $$INSERT INTO orders SELECT (jsonb_populate_record(o, jsonb_build_object('order_id', 9, 'user_id', 99))).* FROM orders AS o WHERE order_id = 1$$),
  ('order_lines.order_lines_pkey', 'UPDATE order_lines SET sku_id = 1, unit_price_minor = 250'),
  ('order_lines.order_lines_order_id_fkey', 'UPDATE order_lines SET order_id = 99 WHERE order_id = 2'),
  ('order_lines.line_qty_positive', 'UPDATE order_lines SET qty = 0'),
  ('order_lines.line_price_not_negative', 'UPDATE order_lines SET unit_price_minor = -1'),
  ('order_lines.line_has_a_sku', 'INSERT INTO order_lines (order_id, sku_id, unit_price_minor, qty) VALUES (1, 99, 1, 1)'),
  ('subscription_terms.terms_from_a_period', 'UPDATE subscription_terms SET from_period = -1'),
  ('subscription_terms.terms_quantity_positive', 'UPDATE subscription_terms SET quantity = 0'),
  ('subscription_terms.terms_price_not_negative', 'UPDATE subscription_terms SET unit_minor = -1'),
  ('subscription_terms.terms_change_something', 'UPDATE subscription_terms SET plan = NULL, quantity = NULL, unit_minor = NULL'),
  ('subscription_terms.one_terms_entry', $$INSERT INTO subscription_terms (terms_id, subscription_id, from_period, plan, quantity, unit_minor) OVERRIDING SYSTEM VALUE SELECT terms_id, subscription_id, from_period, 'q', 1, 1 FROM subscription_terms$$),
  ('months.one_row_per_month', 'INSERT INTO months SELECT * FROM months'),
  ('months.month_starts_on_its_first', $$UPDATE months SET month = month + 1 WHERE month = '2024-02-01'$$),
  ('seals.one_seal_per_sum', 'INSERT INTO seals SELECT * FROM seals'),
  ('seals.seal_counts_rows', 'UPDATE seals SET row_ct = -1'),
  ('seals.seal_is_of_a_month', $$UPDATE seals SET month = '1999-01-01'$$),
  ('sealed_wallets.sealed_wallets_pkey', 'INSERT INTO sealed_wallets SELECT * FROM sealed_wallets'),
  ('sealed_stock.sealed_stock_pkey', 'INSERT INTO sealed_stock SELECT * FROM sealed_stock'),
  ('sealed_batches.one_sealed_batch', 'INSERT INTO sealed_batches SELECT * FROM sealed_batches'),
  ('lock_incidents.lock_incidents_pkey', 'INSERT INTO lock_incidents OVERRIDING SYSTEM VALUE SELECT * FROM lock_incidents'),
  ('lock_incidents.incident_kind_known', $$UPDATE lock_incidents SET kind = 'mislaid'$$),
  ('lock_token.lock_token_pkey', 'INSERT INTO lock_token (one, last) VALUES (true, 1)'),
  ('lock_token.one_row', 'UPDATE lock_token SET one = false'),
  ('lock_token.last_is_a_token', 'UPDATE lock_token SET last = 9007199254740992'),
  ('workers.workers_pkey', 'UPDATE workers SET slot = 1 WHERE slot = 2'),
  ('schema_migrations.schema_migrations_pkey', 'INSERT INTO schema_migrations SELECT * FROM schema_migrations'),
  ('schema_migrations.schema_migrations_kind_check', $$UPDATE schema_migrations SET kind = 'rumour'$$),
  ('batches.batches_pkey', 'INSERT INTO batches OVERRIDING SYSTEM VALUE SELECT * FROM batches'),
  ('batches.batch_done_not_negative', 'UPDATE batches SET done = -1'),
  ('batches.batch_refused_not_negative', 'UPDATE batches SET refused = -1, done = 2'),
  ('batches.batch_names_its_decisions', $$UPDATE batches SET ids = '{1,2}'$$),
  ('batches.one_batch_per_transaction', 'INSERT INTO batches (job, token, worker, at, done, refused, ids, feed_no) SELECT job, token, worker, at, done, refused, ids, feed_no FROM batches'),
  ('feed_base.feed_base_pkey', 'INSERT INTO feed_base (base) VALUES (1)'),
  ('feed_base.one_base', 'UPDATE feed_base SET one = false'),
  ('feed_base.base_not_negative', 'UPDATE feed_base SET base = -1'),
  ('audits.audit_took_time', $$INSERT INTO audits (took_ms, invariants, broken) VALUES (-1, 66, '{}')$$),
  ('audits.audit_has_invariants', $$INSERT INTO audits (took_ms, invariants, broken) VALUES (1, 0, '{}')$$),
  ('audits.broken_are_names', $$INSERT INTO audits (took_ms, invariants, broken) VALUES (1, 66, '{NULL}')$$),
  ('audits.one_audit', 'INSERT INTO audits OVERRIDING SYSTEM VALUE SELECT * FROM audits'),
  ('paused_jobs.job_has_a_name', $$INSERT INTO paused_jobs (job) VALUES ('Billing!')$$),
  ('paused_jobs.one_pause_per_job', $$INSERT INTO paused_jobs (job) VALUES ('billing')$$),
  ('retry_schedules.one_retry_schedule', 'INSERT INTO retry_schedules OVERRIDING SYSTEM VALUE SELECT * FROM retry_schedules'),
  ('retry_schedules.retries_within_a_year', $$INSERT INTO retry_schedules (pauses_s) VALUES ('{}')$$),
  ('orders.decided_is_finite', $$UPDATE orders SET state = 'fulfilled', fence = 1, decided_at = 'infinity'$$),
  ('batches.batch_not_ahead', $$UPDATE batches SET at = recorded_at + interval '61 s'$$),
  ('users.wallet_of_user', $$ALTER TABLE users DROP CONSTRAINT users_pkey CASCADE; INSERT INTO users (user_id, currency) VALUES (1, 'USD')$$),
  ('subscriptions.keep_subscriptions()', $$INSERT INTO subscriptions (subscription_id, user_id, plan, amount_minor, currency, anchor_at, unit, next_due_at) VALUES (9, 1, 'p', 100, 'USD', '2023-11-10Z', 'month', '2023-11-10Z')$$);

-- These refuse everybody but a person who repairs.
CREATE TEMP TABLE unless_repaired (guard text, statement text);
INSERT INTO unless_repaired VALUES
  ('payments.payments_stay_as_planned()', 'UPDATE payments SET amount_minor = 1 WHERE user_id = 1'),
  ('payments.decided_payments_stay_so()', $$UPDATE payments SET state = 'declined' WHERE user_id = 2$$),
  ('payments.payments_are_never_deleted()', 'DELETE FROM payments'),
  ('payments.payments_are_never_emptied()', 'TRUNCATE payments'),
  ('instance.instance_is_never_changed()', 'DELETE FROM instance'),
  ('subscription_terms.subscription_terms_are_never_changed()', 'DELETE FROM subscription_terms'),
  ('wallet_entries.wallet_entries_are_never_changed()', 'DELETE FROM wallet_entries'),
  ('stock_entries.stock_entries_are_never_changed()', 'DELETE FROM stock_entries'),
  ('contracts.contracts_are_never_changed()', 'DELETE FROM contracts'),
  ('users.wallets_stay_with_their_user()', $$UPDATE users SET external_ref = 'eve' WHERE user_id = 1$$),
  ('stock.skus_are_never_deleted()', 'DELETE FROM stock WHERE sku_id = 2'),
  ('stock.skus_stay_what_they_are()', 'UPDATE stock SET initial_qty = 11 WHERE sku_id = 1'),
  ('subscriptions.terms_stay_as_agreed()', 'UPDATE subscriptions SET amount_minor = 1'),
  ('charges.settled_charges_are_never_changed()', $$UPDATE charges SET worker = 'w'$$),
  ('orders.orders_stay_as_placed()', 'UPDATE orders SET placed_at = now()'),
  ('order_lines.order_lines_are_never_changed()', 'DELETE FROM order_lines'),
  ('lock_incidents.lock_incidents_are_never_changed()', 'DELETE FROM lock_incidents'),
  ('batches.batches_are_never_changed()', 'UPDATE batches SET done = 2'),
  ('months.months_are_never_changed()', 'DELETE FROM months'),
  ('seals.seals_are_never_changed()', 'UPDATE seals SET total = 0'),
  ('sealed_wallets.sealed_wallets_are_written_by_close_month()', 'UPDATE sealed_wallets SET net_minor = 0'),
  ('sealed_stock.sealed_stock_are_written_by_close_month()', 'TRUNCATE sealed_stock'),
  ('sealed_batches.sealed_batches_are_written_by_close_month()', 'DELETE FROM sealed_batches'),
  ('retry_schedules.retry_schedules_are_never_changed()', 'DELETE FROM retry_schedules'),
  ('charges.charges_are_never_deleted()', 'DELETE FROM charges'),
  ('feed_base.base_is_never_deleted()', 'DELETE FROM feed_base'),
  ('feed_base.base_is_never_emptied()', 'TRUNCATE feed_base'),
  ('lock_token.token_is_never_deleted()', 'DELETE FROM lock_token'),
  ('lock_token.token_is_never_emptied()', 'TRUNCATE lock_token'),
  ('lock_token.tokens_only_rise()', 'UPDATE lock_token SET last = 9; UPDATE lock_token SET last = 8'),
  ('orders.orders_are_never_deleted()', 'DELETE FROM orders'),
  ('orders.decided_orders_stay_so()', $$UPDATE orders SET state = 'cancelled'; UPDATE orders SET state = 'pending'$$),
  ('subscriptions.subscriptions_are_never_deleted()', 'DELETE FROM subscriptions');
INSERT INTO unless_repaired
SELECT format('%s.%s_are_never_emptied()', name, regexp_replace(name, '_2023_12', '')), format('TRUNCATE %s CASCADE', name)
  FROM unnest('{charges,order_lines,lock_incidents,events,batches,subscription_terms,
                retry_schedules,contracts,wallet_entries,stock_entries,months,seals,
                charges_2023_12}'::text[]) AS name;

-- A month that is closed refuses these, also to a person who repairs.
CREATE TEMP TABLE when_closed (guard text, statement text);
INSERT INTO when_closed VALUES
  ('charges_2023_12.month_stays_closed()', 'TRUNCATE charges_2023_12'),
  ('charges_2023_12.month_is_closed()', 'DELETE FROM charges_2023_12'),
  ('charges_2023_12.month_is_closed', 'INSERT INTO charges SELECT * FROM charges_2023_12'),
  ('orders.month_is_closed()', $$INSERT INTO orders SELECT (jsonb_populate_record(o, '{"order_id": 99, "idempotency_key": "k99"}')).* FROM orders AS o WHERE order_id = 77$$),
  ('orders.month_is_closed()', $$UPDATE orders SET state = 'cancelled', placed_at = '2023-12-31 23:59:59.999999Z' WHERE order_id = 1$$),
  ('orders.month_stays_closed()', 'UPDATE orders SET fence = 2 WHERE order_id = 77'),
  ('orders.month_stays_closed()', 'UPDATE orders SET placed_at = now(), decided_at = now() WHERE order_id = 77'),
  ('orders.month_stays_closed()', 'DELETE FROM orders WHERE order_id = 78'),
  ('order_lines.month_stays_closed()', 'UPDATE order_lines SET order_id = 77 WHERE order_id = 1'),
  ('order_lines.month_stays_closed()', 'UPDATE order_lines SET order_id = 1, unit_price_minor = 1 WHERE order_id = 77'),
  ('order_lines.month_stays_closed()', 'DELETE FROM order_lines WHERE order_id = 77'),
  ('orders.what_is_closed_stays()', 'TRUNCATE orders CASCADE'),
  ('order_lines.what_is_closed_stays()', 'TRUNCATE order_lines');
INSERT INTO when_closed
SELECT format('%s.%s()', name, trigger), format(statement, name)
  FROM unnest('{wallet_entries,stock_entries}'::text[]) AS name, (VALUES
    ('month_is_closed', 'INSERT INTO %1$s OVERRIDING SYSTEM VALUE SELECT * FROM %1$s WHERE at < ''2024-01-01Z'''),
    ('month_is_closed', 'UPDATE %s SET at = ''2023-12-31 23:59:59.999999Z'' WHERE at >= ''2024-01-01Z'''),
    ('month_stays_closed', 'UPDATE %s SET at = ''2024-01-01Z'' WHERE at < ''2024-01-01Z'''),
    ('month_stays_closed', 'DELETE FROM %s WHERE at < ''2024-01-01Z'''),
    ('what_is_closed_stays', 'TRUNCATE %s')) AS v (trigger, statement);

-- Guarantee: Each constraint, unique index and trigger of the schema refuses a row that breaks it; none is without such a row.
BEGIN; SELECT t.test('each_constraint_and_trigger_refuses_a_row');
SELECT pg_temp.fill();
SELECT is(pg_temp.refused_by(statement, 'on'), guard, statement) FROM refusals;
SELECT is(pg_temp.refused_by(statement, 'off'), guard, statement) FROM unless_repaired;
INSERT INTO charges (subscription_id, period_no, user_id, period_start, period_end, amount_minor, state, tries, fence, worker, charged_at)
VALUES (1, 9, 1, '2023-12-01Z', '2024-01-01Z', 100, 'captured', 1, 1, 'w', '2024-01-01Z');
INSERT INTO orders (order_id, user_id, idempotency_key, request_hash, state, total_minor, currency, placed_at, decided_at, fence)
SELECT n, 1, 'k' || n, '', 'fulfilled', 0, 'USD', '2023-12-01Z', '2023-12-01Z', 1 FROM generate_series(77, 78) AS n;
INSERT INTO order_lines (order_id, sku_id, unit_price_minor, qty) VALUES (77, 1, 0, 1);
INSERT INTO wallet_entries (user_id, kind, idempotency_key, amount_minor, at) VALUES (1, 'deposit', 'old', 1, '2023-12-01Z');
INSERT INTO stock_entries (sku_id, kind, idempotency_key, qty, at) VALUES (1, 'delivery', 'old', 5, '2023-12-01Z');
SELECT close_month('2023-12-01');
SELECT is(pg_temp.refused_by(statement, 'on'), guard, statement) FROM when_closed;
CREATE TEMP VIEW guards AS -- of the partitions those of the closed month, beside what they have from their table
  SELECT coalesce(r.relname, d.typname) || '.' || conname AS guard FROM pg_constraint AS c
    LEFT JOIN pg_class AS r ON r.oid = conrelid LEFT JOIN pg_type AS d ON d.oid = contypid
   WHERE connamespace = 'ledgerlock'::regnamespace AND contype IN ('c', 'p', 'u', 'x', 'f') AND coninhcount = 0
   UNION ALL
  SELECT r.relname || '.' || x.relname FROM pg_index JOIN pg_class AS x ON x.oid = indexrelid JOIN pg_class AS r ON r.oid = indrelid
   WHERE x.relnamespace = 'ledgerlock'::regnamespace AND indisunique AND NOT x.relispartition
     AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = indexrelid)
   UNION ALL
  SELECT r.relname || '.' || tgname || '()' FROM pg_trigger JOIN pg_class AS r ON r.oid = tgrelid
   WHERE NOT tgisinternal AND tgparentid = 0 AND (NOT r.relispartition OR r.relname LIKE '%2023_12') AND r.relnamespace = 'ledgerlock'::regnamespace;
SELECT is(array_agg(guard ORDER BY guard), '{orders.keep_decided_order(),stock.keep_price()}',
          'only triggers that refuse nothing have no statement here')
  FROM (TABLE guards EXCEPT (SELECT guard FROM refusals UNION SELECT guard FROM unless_repaired UNION SELECT guard FROM when_closed)) AS untold;
ROLLBACK;

-- Guarantee: Each trigger of the schema that refuses nothing writes its event or its row of the contracts.
BEGIN; SELECT t.test('trigger_fills_its_table');
SELECT pg_temp.fill(), t.subscription(9, 1, 100, '2024-01-31Z'), t.order(1, 'X1', 'k9');
UPDATE stock SET unit_price_minor = 251 WHERE sku_id = 1;
SELECT is(count(*), 1::bigint, 'keep_subscriptions') FROM contracts WHERE subscription_id = 9 AND plan = 'plan 9';
SELECT is(count(*), 1::bigint, 'keep_decided_order') FROM events WHERE event = 'rejected' AND reason = 'unknown_sku';
SELECT is(amount_minor || ' after ' || old_minor, '251 after 250', 'keep_price') FROM events WHERE sku_id = 1;
ROLLBACK;

-- Guarantee: Nothing that a row names can be deleted: each foreign key refuses it.
BEGIN; SELECT t.test('each_foreign_key_keeps_what_it_names');
SELECT pg_temp.fill();
CREATE TEMP VIEW keys AS SELECT * FROM pg_constraint WHERE connamespace = 'ledgerlock'::regnamespace AND contype = 'f';
SELECT is(pg_temp.refused_by(concat((SELECT string_agg(format('ALTER TABLE %s DROP CONSTRAINT %I; ', o.conrelid::regclass, o.conname), '')
                                       FROM keys AS o WHERE o.confrelid = c.confrelid AND o.oid <> c.oid), 'DELETE FROM ', confrelid::regclass), 'on'),
          conrelid::regclass || '.' || conname, format('%s, without other keys to %s', conname, confrelid::regclass)) FROM keys AS c;
ROLLBACK;

-- Guarantee: Each column that needs a value refuses NULL.
BEGIN; SELECT t.test('each_column_that_needs_a_value_refuses_none');
SELECT pg_temp.fill();
CREATE FUNCTION pg_temp.null_refused(p_table regclass, p_column name) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  v_column text;
BEGIN
  EXECUTE format('UPDATE %s SET %I = NULL', p_table, p_column);
  RETURN false;
EXCEPTION WHEN not_null_violation THEN
  GET STACKED DIAGNOSTICS v_column = COLUMN_NAME;
  RETURN v_column = p_column;
END $$;
CREATE TEMP TABLE needed AS -- but for those that name a partition, NULL names none; events takes no update at all
  SELECT c.oid::regclass AS of, attname, pg_temp.null_refused(c.oid, attname) AS is_refused FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = attrelid
   WHERE c.relnamespace = 'ledgerlock'::regnamespace AND c.relkind IN ('r', 'p') AND c.relname <> 'events' AND NOT c.relispartition AND attnum > 0 AND NOT attisdropped
     AND attnotnull AND attidentity <> 'a' AND attgenerated = ''
     AND NOT EXISTS (SELECT FROM pg_partitioned_table WHERE partrelid = c.oid AND partattrs[0] = attnum);
SELECT is(array_agg(of || '.' || attname), NULL, 'no column takes NULL') FROM needed WHERE NOT is_refused;
SELECT ok(count(*) > 120, 'and each was tried') FROM needed;
ROLLBACK;

BEGIN; SELECT t.test('retry_schedule_that_is_none_is_refused');
SELECT is(pg_temp.refused_by(format('INSERT INTO retry_schedules (pauses_s) VALUES (%L)', pauses), 'off'), 'retry_schedules.retries_within_a_year', pauses)
  FROM unnest(ARRAY['{}', '{0}', '{86400,NULL}', '{86400,31622401}', '{1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1}']) AS pauses;
ROLLBACK;

SELECT t.done(262);
