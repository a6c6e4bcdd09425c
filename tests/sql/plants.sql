-- The audit: each row that is planted into a world in which all holds breaks one invariant, and no other. The world is in the folder audit.
SELECT no_plan();

-- Takes every constraint, unique index and trigger off the schema.
CREATE FUNCTION pg_temp.unguard() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  v record;
BEGIN
  FOR v IN SELECT conrelid::regclass AS of, conname FROM pg_constraint
            WHERE connamespace = 'ledgerlock'::regnamespace AND conrelid <> 0 AND coninhcount = 0 ORDER BY contype <> 'f' LOOP
    EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', v.of, v.conname);
  END LOOP;
  FOR v IN SELECT indexrelid::regclass AS name FROM pg_index JOIN pg_class AS c ON c.oid = indexrelid
            WHERE indisunique AND NOT relispartition AND relnamespace = 'ledgerlock'::regnamespace LOOP
    EXECUTE format('DROP INDEX %s', v.name);
  END LOOP;
  FOR v IN SELECT tgrelid::regclass AS of, tgname FROM pg_trigger JOIN pg_class AS c ON c.oid = tgrelid
            WHERE NOT tgisinternal AND tgparentid = 0 AND relnamespace = 'ledgerlock'::regnamespace LOOP
    EXECUTE format('DROP TRIGGER %I ON %s', v.tgname, v.of);
  END LOOP;
END $$;

-- The invariants that a plant breaks, which is undone; batches and events say what the tables say, or what they said before.
CREATE FUNCTION pg_temp.broken_by(p_plant text, p_events text) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
  v_broken text[];
BEGIN
  BEGIN
    DISCARD PLANS; -- they may know of what was undone
    EXECUTE p_plant;
    EXECUTE p_events;
    v_broken := t.broken('2024-04-10Z', '1 hour');
    RAISE EXCEPTION SQLSTATE 'TUNDO';
  EXCEPTION WHEN SQLSTATE 'TUNDO' THEN NULL;
  END;
  RETURN v_broken;
END $$;
CREATE TEMP TABLE anew AS SELECT sql FROM t.texts WHERE name = 'events';

-- The first payment once more, but for what the JSON says.
CREATE FUNCTION pg_temp.payment(p_but text) RETURNS text LANGUAGE sql RETURN
  format('INSERT INTO payments (%1$s) OVERRIDING SYSTEM VALUE SELECT %1$s FROM (SELECT (jsonb_populate_record(p, %2$L)).* FROM payments AS p ORDER BY payment_id LIMIT 1) AS p',
         $$payment_id, kind, source, leg, attempt_no, user_id, source_at, amount_minor, currency, customer, method, state, calls, first_sent_at, due_at, reference, planned_fence, fence, worker, at$$, p_but);
CREATE TEMP TABLE plants (invariant text, plant text);
INSERT INTO plants VALUES
  ('payment_matches_its_source', 'DELETE FROM payments WHERE source = 29'),
  ('payment_matches_its_source', 'DELETE FROM payments WHERE source = 91'),
  ('payment_matches_its_source', 'DELETE FROM payments WHERE source = 92'),
  ('payment_matches_its_source', pg_temp.payment('{}')),
  ('payment_matches_its_source', 'UPDATE payments SET amount_minor = amount_minor + 1 WHERE source = 29'),
  ('payment_matches_its_source', 'UPDATE payments SET amount_minor = amount_minor + 1 WHERE source = 91'),
  ('payment_matches_its_source', $$UPDATE payments SET state = 'unknown' WHERE source = 29$$),
  ('payment_matches_its_source', $$UPDATE payments SET state = 'captured' WHERE source = 92$$),
  ('payment_matches_its_source', $$UPDATE payments SET state = 'declined' WHERE source = 92$$),
  ('payment_matches_its_source', $$UPDATE subscriptions SET state = 'paying' WHERE subscription_id = 29$$),
  ('payment_matches_its_source', pg_temp.payment('{"payment_id": 99, "leg": 1, "state": "unknown"}')),
  ('payment_matches_its_source', pg_temp.payment('{"payment_id": 99, "kind": "refund", "source": 1000}')),
  ('held_is_sum_of_holds', 'UPDATE stock SET held = held - 1 WHERE sku_id = 90'),
  ('held_is_sum_of_holds', 'UPDATE stock SET held = 1 WHERE sku_id = 1'),
  ('one_charge_per_period', 'INSERT INTO charges SELECT * FROM charges WHERE (subscription_id, period_no) = (1, 0); UPDATE users SET balance_minor = balance_minor - 1000 WHERE user_id = 1'),
  ('periods_contiguous', $$DELETE FROM charges WHERE (subscription_id, period_no) = (1, 1); UPDATE users SET balance_minor = balance_minor + 1000 WHERE user_id = 1$$),
  ('next_period_right', $$UPDATE subscriptions SET next_period_no = 4, next_due_at = '2024-05-31 00:00Z' WHERE subscription_id = 1$$),
  ('next_period_right', $$UPDATE subscriptions SET next_period_no = 1, next_due_at = '2024-06-30 00:00Z' WHERE subscription_id = 7$$),
  ('proration_is_right', $$UPDATE wallet_entries SET amount_minor = -200 WHERE idempotency_key = 'up'; UPDATE users SET balance_minor = balance_minor + 1 WHERE user_id = 1$$),
  ('proration_is_right', $$UPDATE wallet_entries SET at = at - interval '1 day' WHERE idempotency_key = 'up'$$),
  ('proration_is_right', $$UPDATE wallet_entries SET of_leg = 1 WHERE idempotency_key = 'up'$$),
  ('proration_is_right', $$UPDATE wallet_entries SET old_minor = 1001 WHERE idempotency_key = 'up'$$),
  ('proration_is_right', $$UPDATE wallet_entries SET terms_id = terms_id - 1 WHERE idempotency_key = 'down'$$),
  ('next_period_right', $$UPDATE subscriptions SET next_period_no = 4, next_due_at = '2024-05-05 00:00Z' WHERE subscription_id = 8$$),
  ('periods_contiguous', 'DELETE FROM charges WHERE (subscription_id, period_no) = (8, 2)'),
  ('charge_matches_subscription', $$UPDATE charges SET charged_at = period_start - interval '1 s' WHERE (subscription_id, period_no) = (8, 1)$$),
  ('charge_matches_subscription', 'UPDATE charges SET amount_minor = 1 WHERE (subscription_id, period_no) = (8, 4)'),
  ('next_due_right', $$UPDATE subscriptions SET next_due_at = now() + interval '367 days' WHERE state = 'past_due'$$),
  ('charge_matches_subscription', $$UPDATE charges SET period_end = period_end + interval '1 day' WHERE (subscription_id, period_no) = (1, 1)$$),
  ('charge_matches_subscription', $$UPDATE charges SET period_start = period_start - interval '1 day' WHERE (subscription_id, period_no) = (1, 1)$$),
  ('charge_matches_subscription', 'UPDATE subscriptions SET amount_minor = 1001 WHERE subscription_id = 1'),
  ('charge_matches_subscription', 'DELETE FROM subscriptions WHERE subscription_id = 5'),
  ('charge_matches_subscription', 'UPDATE subscription_terms SET unit_minor = 151 WHERE unit_minor = 150'),
  ('charge_matches_subscription', $$INSERT INTO subscription_terms (subscription_id, from_period, plan, quantity, unit_minor) VALUES (1, 2, 'pro', 1, 1001); UPDATE subscriptions SET terms_from_no = 2 WHERE subscription_id = 1$$),
  ('declined_is_the_open_period', 'DELETE FROM charges WHERE (subscription_id, period_no) = (3, 1)'),
  ('declined_is_the_open_period', $$INSERT INTO charges SELECT 4, 2, 3, '2024-04-11 00:00Z', '2024-04-21 00:00Z', 300, 'declined', 1, 0, '', '2024-04-12'$$),
  ('declined_is_the_open_period', $$INSERT INTO charges SELECT 2, 3, 1, '2024-04-12 00:00Z', '2024-04-26 00:00Z', 200, 'declined', 1, 0, '', '2024-04-13'$$),
  ('charge_matches_subscription', $$UPDATE charges SET charged_at = period_start - interval '1 second' WHERE (subscription_id, period_no) = (1, 0)$$),
  ('periods_follow_the_calendar', $$CREATE OR REPLACE FUNCTION period_start(p_anchor timestamptz, p_unit text, p_every integer, p_no bigint) RETURNS timestamptz LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN (p_anchor AT TIME ZONE interval '0' + p_no * p_every * CASE p_unit WHEN 'day' THEN interval '1 day' WHEN 'week' THEN interval '7 days' WHEN 'month' THEN interval '1 month' WHEN 'year' THEN interval '12 months' END + CASE p_anchor WHEN '2024-05-31Z' THEN interval '1 hour' ELSE interval '0' END) AT TIME ZONE interval '0'; UPDATE subscriptions SET next_due_at = '2024-05-31 01:00Z' WHERE subscription_id = 7$$),
  ('charge_matches_subscription', $$UPDATE subscriptions SET cancel_at = '2024-03-15 00:00Z' WHERE subscription_id = 2$$),
  ('charge_matches_subscription', $$UPDATE subscriptions SET cancel_at = '2024-05-05 00:00Z' WHERE subscription_id = 8$$),
  ('cancelled_when_over', $$UPDATE subscriptions SET cancel_at = '2024-03-29 00:00:01Z' WHERE subscription_id = 2$$),
  ('cancelled_when_over', 'UPDATE subscriptions SET cancel_at = NULL WHERE subscription_id = 2'),
  ('balance_is_sum_of_ledger', 'UPDATE users SET balance_minor = balance_minor + 1 WHERE user_id = 1'),
  ('balance_is_sum_of_ledger', $$INSERT INTO wallet_entries (user_id, kind, idempotency_key, amount_minor, at) VALUES (99, 'deposit', '', 100, now())$$),
  ('balance_is_sum_of_ledger', $$INSERT INTO wallet_entries (user_id, kind, idempotency_key, amount_minor, at) VALUES (1, 'deposit', '9', 3000000000, now())$$),
  ('balance_never_negative', $$UPDATE wallet_entries SET amount_minor = 999 WHERE user_id = 2; UPDATE users SET balance_minor = -1 WHERE user_id = 2$$),
  ('on_hand_is_sum_of_stock_ledger', 'UPDATE stock SET on_hand = on_hand + 1 WHERE sku_id = 1'),
  ('on_hand_is_sum_of_stock_ledger', $$INSERT INTO stock_entries (sku_id, kind, idempotency_key, qty, at) VALUES (99, 'delivery', '', 5, now())$$),
  ('on_hand_never_negative', 'UPDATE stock SET initial_qty = 0, on_hand = -1 WHERE sku_id = 2'),
  ('order_total_is_its_lines', 'UPDATE orders SET total_minor = 2001 WHERE order_id = 2'),
  ('order_total_is_its_lines', 'DELETE FROM order_lines WHERE order_id = 3'),
  ('rejected_order_has_reason', 'UPDATE orders SET reason = NULL WHERE order_id = 3'),
  ('rejected_order_has_reason', 'UPDATE orders SET skus = NULL WHERE order_id = 2'),
  ('rejected_order_has_reason', $$UPDATE orders SET reason = 'insufficient_funds' WHERE order_id = 6$$),
  ('order_total_is_its_lines', 'UPDATE order_lines SET qty = 4000000000, unit_price_minor = 4000000000 WHERE order_id = 2'),
  ('one_order_per_key', $$UPDATE orders SET idempotency_key = 'k2' WHERE order_id = 4$$),
  ('user_fence_covers_effects', 'UPDATE users SET fence = fence - 1 WHERE user_id = 1'),
  ('user_fence_covers_effects', 'UPDATE charges SET fence = 1099511627785 WHERE subscription_id = 5'),
  ('stock_fence_covers_effects', 'UPDATE stock SET fence = 1099511627777 WHERE sku_id = 1'),
  ('no_fence_beyond_tokens', 'UPDATE lock_token SET last = 9007199254740991'),
  ('nothing_due_left', $$UPDATE orders SET placed_at = '2024-04-09 22:59Z' WHERE order_id = 6$$),
  ('nothing_due_left', $$UPDATE subscriptions SET anchor_at = '2024-04-09 22:59Z', next_due_at = '2024-04-09 22:59Z' WHERE subscription_id = 7$$),
  ('nothing_due_left', $$UPDATE subscriptions SET next_due_at = '2024-04-01' WHERE subscription_id = 3$$),
  ('nothing_parked', $$UPDATE subscriptions SET state = 'parked' WHERE subscription_id = 5$$),
  ('one_subscription_per_contract', 'INSERT INTO subscriptions (subscription_id, user_id, plan, amount_minor, currency, anchor_at, unit, next_due_at) SELECT 19, user_id, plan, amount_minor, currency, anchor_at, unit, next_due_at FROM subscriptions WHERE subscription_id = 7'),
  ('subscription_has_its_wallet', $$UPDATE subscriptions SET currency = 'EUR' WHERE subscription_id = 7$$),
  ('subscription_has_its_wallet', 'UPDATE subscriptions SET user_id = 99 WHERE subscription_id = 7'),
  ('order_has_its_wallet', $$UPDATE orders SET currency = 'EUR' WHERE order_id = 6$$),
  ('order_has_its_wallet', 'UPDATE orders SET user_id = 99 WHERE order_id = 6'),
  ('line_has_its_sku', 'UPDATE order_lines SET sku_id = 99 WHERE order_id = 6'),
  ('nothing_parked', $$UPDATE orders SET state = 'parked' WHERE order_id = 6$$),
  ('return_is_of_sold_units', $$UPDATE wallet_entries SET kind = 'refund' WHERE kind = 'return'$$),
  ('never_more_given_back_than_paid', $$UPDATE wallet_entries SET of_minor = of_minor + 1 WHERE kind = 'refund'$$),
  ('never_more_given_back_than_paid', $$UPDATE wallet_entries SET before_minor = 1 WHERE kind = 'refund'$$),
  ('never_more_given_back_than_paid', $$UPDATE wallet_entries SET of_leg = 1 WHERE kind = 'refund'$$),
  ('never_more_given_back_than_paid', $$UPDATE wallet_entries SET of_at = of_at + interval '1 s' WHERE kind = 'refund'$$),
  ('never_more_given_back_than_paid', $$UPDATE wallet_entries SET kind = 'void' WHERE kind = 'refund'$$),
  ('never_more_given_back_than_paid', $$UPDATE wallet_entries SET amount_minor = 1001 WHERE kind = 'refund'; UPDATE users SET balance_minor = balance_minor + 701 WHERE user_id = 1$$),
  ('return_is_of_sold_units', 'UPDATE stock_entries SET before_qty = 1'),
  ('return_is_of_sold_units', 'UPDATE stock_entries SET sold_qty = 2'),
  ('return_is_of_sold_units', $$UPDATE wallet_entries SET amount_minor = 399 WHERE kind = 'return'; UPDATE users SET balance_minor = balance_minor - 1 WHERE user_id = 1$$),
  ('return_is_of_sold_units', $$DELETE FROM wallet_entries WHERE kind = 'return'; UPDATE users SET balance_minor = balance_minor - 400 WHERE user_id = 1$$),
  ('return_is_of_sold_units', $$UPDATE stock_entries SET order_id = 7 WHERE kind = 'return'$$),
  ('return_is_of_sold_units', $$UPDATE stock_entries SET reason = 'mood' WHERE kind = 'return'$$),
  ('return_is_of_sold_units', $$UPDATE stock_entries SET user_id = 2 WHERE kind = 'return'$$),
  ('return_is_of_sold_units', $$DELETE FROM stock_entries WHERE kind = 'return'; UPDATE stock SET on_hand = on_hand - 1 WHERE sku_id = 2$$),
  ('return_is_of_sold_units', $$UPDATE stock_entries SET qty = 2 WHERE kind = 'return'; UPDATE stock SET on_hand = on_hand + 1 WHERE sku_id = 2$$);

-- Batches and events are not made anew behind these.
CREATE TEMP TABLE plants_alone (invariant text, plant text);
INSERT INTO plants_alone VALUES
  ('card_is_as_its_event', $$UPDATE users SET card_method = 'pm_8' WHERE user_id = 19$$),
  ('card_is_as_its_event', $$UPDATE users SET card_customer = 'cus_9', card_method = 'pm_9' WHERE user_id = 2$$),
  ('no_fence_beyond_tokens', $$UPDATE users SET fence = 9006099743113216 WHERE user_id = 3; INSERT INTO batches (job, token, worker, at, done, refused, ids, feed_no) VALUES ('toy', 9006099743113216, '', now(), 0, 0, '{}', 100)$$),
  ('no_fence_beyond_tokens', $$UPDATE stock SET fence = 9007199254740992 WHERE sku_id = 3; INSERT INTO batches (job, token, worker, at, done, refused, ids, feed_no) VALUES ('toy', 9007199254740992, '', now(), 0, 0, '{}', 101)$$),
  ('charges_have_their_batch', $$UPDATE charges SET worker = 'mallory' WHERE (subscription_id, period_no) = (1, 0)$$),
  ('charges_have_their_batch', 'DELETE FROM batches WHERE token = 1099511627777 AND done > 0'),
  ('charges_have_their_batch', 'UPDATE events SET token = 5 WHERE subscription_id = 3 AND try_no = 1'),
  ('orders_have_their_batch', 'UPDATE batches SET refused = refused + 1 WHERE token = 1099511627782'),
  ('orders_have_their_batch', 'UPDATE orders SET fence = 1099511627781 WHERE order_id = 2'),
  ('charge_has_its_tries', 'UPDATE events SET amount_minor = 1 WHERE subscription_id = 3 AND try_no = 2'),
  ('charge_has_its_tries', $$DELETE FROM events WHERE subscription_id = 3 AND try_no = 1; UPDATE batches SET refused = 1 WHERE refused = 2 AND job = 'billing'$$),
  ('unserved_period_has_its_event', $$UPDATE charges SET state = 'waived' WHERE (subscription_id, period_no) = (8, 3)$$),
  ('unserved_period_has_its_event', $$UPDATE charges SET worker = 'mallory' WHERE (subscription_id, period_no) = (8, 0)$$),
  ('unserved_period_has_its_event', 'UPDATE charges SET fence = 7 WHERE (subscription_id, period_no) = (8, 0)'),
  ('unserved_period_has_its_event', 'DELETE FROM events WHERE (subscription_id, from_period) = (8, 1)'),
  ('charge_has_its_tries', 'UPDATE charges SET tries = 1 WHERE (subscription_id, period_no) = (8, 0)'),
  ('closed_account_stays_closed', $$INSERT INTO events (event, user_id) VALUES ('closed', 2)$$),
  ('closed_account_stays_closed', 'UPDATE users SET closed_at = now() WHERE user_id = 3'),
  ('closed_account_stays_closed', $$INSERT INTO users (user_id, currency, closed_at) VALUES (4, 'USD', '2024-04-01'); INSERT INTO events (event, user_id, at) VALUES ('closed', 4, '2024-04-01'); INSERT INTO wallet_entries (user_id, kind, idempotency_key, amount_minor, at) VALUES (4, 'deposit', 'k', 5, '2024-04-02'); INSERT INTO wallet_entries (user_id, kind, idempotency_key, amount_minor, reason, at) VALUES (4, 'withdrawal', 'k', -5, 'r', '2024-04-02')$$),
  ('terms_have_their_event', 'INSERT INTO subscription_terms (subscription_id, from_period, unit_minor) VALUES (4, 2, 1)'),
  ('terms_have_their_event', 'DELETE FROM subscription_terms WHERE unit_minor = 1'),
  ('terms_have_their_event', $$UPDATE events SET worker = 'mallory' WHERE event = 'terms'$$),
  ('terms_have_their_event', 'UPDATE subscriptions SET terms_from_no = NULL'),
  ('terms_have_their_event', 'UPDATE subscriptions SET terms_from_no = 3 WHERE subscription_id = 7'),
  ('subscription_is_as_its_events', $$UPDATE subscriptions SET cancel_at = '2024-05-31Z' WHERE subscription_id = 7$$),
  ('subscription_is_as_its_events', $$UPDATE subscriptions SET next_due_at = '2024-04-20' WHERE subscription_id = 3$$),
  ('order_is_as_its_events', $$INSERT INTO events (event, order_id, user_id, state) VALUES ('released', 6, 1, 'pending'); UPDATE orders SET state = 'rejected', reason = 'unknown_sku', skus = '{Z}', decided_at = placed_at WHERE order_id = 6$$),
  ('order_is_as_its_events', 'DELETE FROM orders WHERE order_id = 4'),
  ('order_is_as_its_events', 'DELETE FROM events WHERE order_id = 8'),
  ('unserved_period_has_its_event', $$DELETE FROM events WHERE event = 'written_off'$$),
  ('unserved_period_has_its_event', $$UPDATE events SET amount_minor = NULL WHERE event = 'written_off'$$),
  ('proration_is_right', $$UPDATE subscription_terms SET quantity = 4611686018427387904, unit_minor = 4611686018427387904 WHERE plan = 'max'$$),
  ('fence_is_of_a_batch', 'UPDATE users SET fence = fence + 1000 WHERE user_id = 1'),
  ('fence_is_of_a_batch', 'UPDATE stock SET fence = fence + 1000 WHERE sku_id = 1'),
  ('seals_add_up', $$ALTER TABLE sealed_wallets ADD PRIMARY KEY (user_id); ALTER TABLE sealed_stock ADD PRIMARY KEY (sku_id); ALTER TABLE sealed_batches ADD PRIMARY KEY (token, at, worker); SELECT close_month('2023-04-01'); UPDATE seals SET checksum = checksum + 1 WHERE table_name = 'months'$$),
  ('sealed_rows_keep_their_sums', $$ALTER TABLE sealed_wallets ADD PRIMARY KEY (user_id); ALTER TABLE sealed_stock ADD PRIMARY KEY (sku_id); ALTER TABLE sealed_batches ADD PRIMARY KEY (token, at, worker); SELECT close_month('2023-04-01'); ALTER TABLE charges_2023_04 DROP CONSTRAINT month_is_closed; UPDATE charges SET worker = 'mallory' WHERE subscription_id = 5; ALTER TABLE charges_2023_04 ADD CONSTRAINT month_is_closed CHECK (false) NOT VALID$$),
  ('months_as_built', $$SELECT make_months('2020-01-01', '2020-01-01'); ALTER TABLE charges DETACH PARTITION charges_2020_01$$),
  ('months_as_built', 'GRANT SELECT ON charges_2024_05 TO PUBLIC'),
  ('nothing_after_now', $$UPDATE orders SET placed_at = 'infinity' WHERE order_id = 6$$),
  ('nothing_after_now', $$UPDATE wallet_entries SET at = '2124-01-01' WHERE user_id = 3$$),
  ('nothing_after_now', $$UPDATE stock_entries SET at = '-infinity' WHERE kind = 'delivery'$$),
  ('decided_order_has_its_time', 'UPDATE orders SET decided_at = NULL WHERE order_id = 4'),
  ('charge_has_its_tries', $$UPDATE events SET try_no = try_no + 9 WHERE event_id = (SELECT max(event_id) FROM events WHERE event = 'declined')$$),
  ('order_is_as_its_events', $$UPDATE events SET reason = 'out_of_stock' WHERE reason = 'unknown_sku'$$),
  ('subscription_has_its_contract', 'DELETE FROM contracts WHERE subscription_id = 7'),
  ('subscription_has_its_contract', $$UPDATE contracts SET plan = 'gold' WHERE subscription_id = 7$$),
  ('subscription_has_its_contract', $$INSERT INTO contracts (user_id, plan, anchor_at, subscription_id) VALUES (1, 'gold', now(), 8)$$);

-- Each changes a fact by itself, and leaves wallets, stock, batches and events as they are: all that find it.
CREATE TEMP TABLE facts (found_by text[], fact text);
INSERT INTO facts VALUES
  ('{declined_is_the_open_period,next_due_right,next_period_right,subscription_is_as_its_events}', 'UPDATE subscriptions SET next_period_no = 2 WHERE subscription_id = 3'),
  ('{nothing_due_left,order_is_as_its_events}', $$UPDATE orders SET state = 'pending' WHERE state = 'cancelled'$$),
  ('{next_due_right,periods_follow_the_calendar}', $$UPDATE subscriptions SET next_due_at = '2034-01-01' WHERE subscription_id = 4$$),
  ('{next_due_right,periods_follow_the_calendar}', $$UPDATE subscriptions SET next_due_at = next_due_at + interval '1 hour' WHERE subscription_id = 1$$),
  ('{balance_is_sum_of_ledger,charge_matches_subscription}', 'UPDATE charges SET amount_minor = 999 WHERE (subscription_id, period_no) = (1, 1)'),
  ('{balance_is_sum_of_ledger,charge_matches_subscription}', 'UPDATE charges SET user_id = 2 WHERE (subscription_id, period_no) = (1, 1)'),
  ('{charge_matches_subscription,never_more_given_back_than_paid,next_period_right,proration_is_right}', 'UPDATE charges SET subscription_id = 4 WHERE (subscription_id, period_no) = (1, 2)'),
  ('{charge_matches_subscription,never_more_given_back_than_paid,next_period_right,periods_contiguous,proration_is_right}', 'UPDATE charges SET period_no = 3 WHERE (subscription_id, period_no) = (1, 2)'),
  ('{balance_is_sum_of_ledger,charge_has_its_tries,charges_have_their_batch,declined_is_the_open_period,never_more_given_back_than_paid,next_period_right,proration_is_right}', $$UPDATE charges SET state = 'declined' WHERE (subscription_id, period_no) = (1, 2)$$),
  ('{balance_is_sum_of_ledger,charge_has_its_tries,charges_have_their_batch,declined_is_the_open_period,next_period_right}', $$UPDATE charges SET state = 'captured' WHERE (subscription_id, period_no) = (3, 1)$$),
  ('{balance_is_sum_of_ledger,charges_have_their_batch,unserved_period_has_its_event}', $$UPDATE charges SET state = 'captured' WHERE (subscription_id, period_no) = (8, 1)$$),
  ('{balance_is_sum_of_ledger,charge_has_its_tries,charges_have_their_batch,unserved_period_has_its_event}', $$UPDATE charges SET state = 'written_off' WHERE (subscription_id, period_no) = (2, 1)$$),
  ('{balance_is_sum_of_ledger,charges_have_their_batch,never_more_given_back_than_paid,next_period_right,proration_is_right}', 'DELETE FROM charges WHERE (subscription_id, period_no) = (1, 2)'),
  ('{balance_is_sum_of_ledger,charges_have_their_batch,one_charge_per_period}', 'INSERT INTO charges SELECT * FROM charges WHERE (subscription_id, period_no) = (1, 2)'),
  ('{balance_is_sum_of_ledger,charges_have_their_batch,next_period_right}', $$INSERT INTO charges SELECT 7, 0, 2, '2024-05-31Z', '2024-06-30Z', 100, 'captured', 1, 1099511627777, 'pool-0', '2024-05-31Z'$$),
  ('{balance_is_sum_of_ledger,order_total_is_its_lines}', 'UPDATE orders SET total_minor = 391 WHERE order_id = 5'),
  ('{balance_is_sum_of_ledger,never_more_given_back_than_paid,one_order_per_key,return_is_of_sold_units}', 'UPDATE orders SET user_id = 2 WHERE order_id = 1'),
  ('{order_has_its_wallet}', $$UPDATE orders SET currency = 'USD' WHERE order_id = 5$$),
  ('{balance_is_sum_of_ledger,on_hand_is_sum_of_stock_ledger,orders_have_their_batch,stock_fence_covers_effects}', $$UPDATE orders SET state = 'fulfilled', reason = NULL WHERE order_id = 3$$),
  ('{balance_is_sum_of_ledger,on_hand_is_sum_of_stock_ledger,orders_have_their_batch}', $$UPDATE orders SET state = 'rejected', reason = 'insufficient_funds' WHERE order_id = 5$$),
  ('{nothing_due_left,on_hand_is_sum_of_stock_ledger,orders_have_their_batch}', $$UPDATE orders SET state = 'pending', decided_at = NULL, fence = 0 WHERE order_id = 7$$),
  ('{balance_is_sum_of_ledger,on_hand_is_sum_of_stock_ledger,orders_have_their_batch,stock_fence_covers_effects}', $$UPDATE orders SET state = 'fulfilled', decided_at = placed_at, fence = 1099511627785 WHERE order_id = 6$$),
  ('{balance_is_sum_of_ledger,on_hand_is_sum_of_stock_ledger,order_is_as_its_events,orders_have_their_batch,stock_fence_covers_effects}', $$UPDATE orders SET state = 'fulfilled', decided_at = placed_at, fence = 1099511627785 WHERE order_id = 8$$),
  ('{balance_is_sum_of_ledger,on_hand_is_sum_of_stock_ledger,orders_have_their_batch}', 'DELETE FROM orders WHERE order_id = 5'),
  ('{balance_is_sum_of_ledger,on_hand_is_sum_of_stock_ledger,one_order_per_key,orders_have_their_batch}', 'INSERT INTO orders SELECT * FROM orders WHERE order_id = 5'),
  ('{on_hand_is_sum_of_stock_ledger,order_total_is_its_lines,return_is_of_sold_units}', 'UPDATE order_lines SET qty = 2 WHERE order_id = 1 AND sku_id = 2'),
  ('{on_hand_is_sum_of_stock_ledger}', 'UPDATE order_lines SET qty = 2 WHERE order_id = 7'),
  ('{on_hand_is_sum_of_stock_ledger}', 'UPDATE order_lines SET qty = 3000000000 WHERE order_id = 7'),
  ('{on_hand_is_sum_of_stock_ledger}', 'UPDATE order_lines SET sku_id = 4 WHERE order_id = 1 AND sku_id = 1'),
  ('{order_total_is_its_lines,stock_fence_covers_effects}', 'UPDATE order_lines SET order_id = 7 WHERE order_id = 5 AND qty = 3'),
  ('{order_total_is_its_lines}', 'UPDATE order_lines SET unit_price_minor = 249 WHERE order_id = 1 AND sku_id = 1'),
  ('{on_hand_is_sum_of_stock_ledger,order_total_is_its_lines}', 'DELETE FROM order_lines WHERE order_id = 7'),
  ('{on_hand_is_sum_of_stock_ledger}', 'INSERT INTO order_lines SELECT * FROM order_lines WHERE order_id = 7'),
  ('{on_hand_is_sum_of_stock_ledger}', 'INSERT INTO order_lines (order_id, sku_id, qty, unit_price_minor) VALUES (7, 4, 3000000000, 0)'),
  ('{balance_is_sum_of_ledger}', $$UPDATE wallet_entries SET amount_minor = 999 WHERE idempotency_key = '2'$$),
  ('{balance_is_sum_of_ledger}', $$UPDATE wallet_entries SET user_id = 2 WHERE idempotency_key = '2'$$),
  ('{balance_is_sum_of_ledger}', 'DELETE FROM wallet_entries WHERE user_id = 3'),
  ('{balance_is_sum_of_ledger}', $$INSERT INTO wallet_entries OVERRIDING SYSTEM VALUE SELECT (jsonb_populate_record(w, '{"idempotency_key": "again"}')).* FROM wallet_entries AS w WHERE user_id = 3$$),
  ('{on_hand_is_sum_of_stock_ledger}', $$UPDATE stock_entries SET qty = 6 WHERE kind = 'delivery'$$),
  ('{on_hand_is_sum_of_stock_ledger}', $$UPDATE stock_entries SET sku_id = 2 WHERE kind = 'delivery'$$),
  ('{on_hand_is_sum_of_stock_ledger}', $$DELETE FROM stock_entries WHERE kind = 'delivery'$$),
  ('{on_hand_is_sum_of_stock_ledger}', $$INSERT INTO stock_entries OVERRIDING SYSTEM VALUE SELECT * FROM stock_entries WHERE kind = 'delivery'$$),
  ('{on_hand_is_sum_of_stock_ledger}', $$UPDATE stock_entries SET qty = -2 WHERE kind = 'adjustment'$$),
  ('{on_hand_is_sum_of_stock_ledger}', $$UPDATE stock_entries SET sku_id = 1 WHERE kind = 'adjustment'$$),
  ('{on_hand_is_sum_of_stock_ledger}', $$DELETE FROM stock_entries WHERE kind = 'adjustment'$$),
  ('{on_hand_is_sum_of_stock_ledger,return_is_of_sold_units}', $$UPDATE stock_entries SET qty = 2 WHERE kind = 'return'$$),
  ('{on_hand_is_sum_of_stock_ledger,return_is_of_sold_units}', $$UPDATE stock_entries SET sku_id = 1 WHERE kind = 'return'$$),
  ('{on_hand_is_sum_of_stock_ledger,return_is_of_sold_units}', $$DELETE FROM stock_entries WHERE kind = 'return'$$),
  ('{balance_is_sum_of_ledger}', $$UPDATE wallet_entries SET amount_minor = 301 WHERE kind = 'refund'$$),
  ('{balance_is_sum_of_ledger,never_more_given_back_than_paid}', $$UPDATE wallet_entries SET amount_minor = 199 WHERE kind = 'void'$$),
  ('{balance_is_sum_of_ledger,return_is_of_sold_units}', $$UPDATE wallet_entries SET amount_minor = 399 WHERE kind = 'return'$$),
  ('{balance_is_sum_of_ledger}', $$UPDATE wallet_entries SET amount_minor = -901 WHERE kind = 'withdrawal'$$),
  ('{balance_is_sum_of_ledger,never_more_given_back_than_paid}', $$UPDATE wallet_entries SET user_id = 2 WHERE kind = 'refund'$$),
  ('{balance_is_sum_of_ledger}', $$UPDATE wallet_entries SET user_id = 2 WHERE kind = 'withdrawal'$$),
  ('{balance_is_sum_of_ledger}', $$UPDATE wallet_entries SET kind = 'withdrawal', amount_minor = -amount_minor WHERE kind = 'refund'$$),
  ('{balance_is_sum_of_ledger,never_more_given_back_than_paid}', $$UPDATE wallet_entries SET kind = 'refund', amount_minor = -amount_minor WHERE kind = 'withdrawal'$$),
  ('{return_is_of_sold_units}', $$UPDATE wallet_entries SET kind = 'refund' WHERE kind = 'return'$$),
  ('{never_more_given_back_than_paid}', $$UPDATE wallet_entries SET of_kind = 'payment' WHERE kind = 'refund'$$),
  ('{balance_is_sum_of_ledger}', $$DELETE FROM wallet_entries WHERE kind = 'refund'$$),
  ('{balance_is_sum_of_ledger}', $$DELETE FROM wallet_entries WHERE kind = 'withdrawal'$$),
  ('{balance_is_sum_of_ledger,proration_is_right}', $$UPDATE wallet_entries SET amount_minor = -200 WHERE idempotency_key = 'up'$$),
  ('{balance_is_sum_of_ledger,proration_is_right}', $$UPDATE wallet_entries SET amount_minor = -201 WHERE idempotency_key = 'down'$$),
  ('{balance_is_sum_of_ledger,proration_is_right}', $$UPDATE wallet_entries SET user_id = 2 WHERE idempotency_key = 'up'$$),
  ('{proration_is_right}', $$UPDATE wallet_entries SET of_source = 4 WHERE idempotency_key = 'up'$$),
  ('{balance_is_sum_of_ledger}', $$DELETE FROM wallet_entries WHERE idempotency_key = 'down'$$),
  ('{on_hand_is_sum_of_stock_ledger}', 'UPDATE stock SET initial_qty = initial_qty + 1 WHERE sku_id = 1');

-- Guarantee: Each invariant of the audit has a row planted that breaks it, and that is found by no other. A change of a charge, an order or
-- another fact of money, stock or periods is found.
BEGIN; SELECT t.test('every_plant_breaks_its_invariant_alone');
SET LOCAL ledgerlock.repair = on;
\ir audit/rows.sql
\ir audit/cards.sql
\ir audit/events.sql
\ir audit/corrections.sql
SELECT is(t.broken('2024-04-10Z', '1 hour'), '{}', 'without a plant all holds');
SELECT pg_temp.unguard();
SELECT is(pg_temp.broken_by(plant, sql), ARRAY[invariant], plant) FROM plants, anew;
SELECT is(pg_temp.broken_by(plant, ''), ARRAY[invariant], plant) FROM plants_alone;
SELECT is(pg_temp.broken_by(fact, ''), found_by, fact) FROM facts;
SELECT is(array_agg(name), '{schema_as_built}', 'one alone has no plant here') FROM t.invariants
 WHERE name NOT IN (SELECT invariant FROM plants UNION SELECT invariant FROM plants_alone);
ROLLBACK;

-- ---- each column of each table, behind the program's back ----

-- One change of one row for each column, to the value of another row if there is one, and of each table a row less and a row twice. Tables in
-- which workers and pools tell of themselves prove nothing, and are left out.
CREATE FUNCTION pg_temp.tampers() RETURNS TABLE (what text, change text) LANGUAGE sql AS $tampers$
  WITH tables AS (
    SELECT oid, relname AS name FROM pg_class WHERE relnamespace = 'ledgerlock'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
       AND relname NOT IN ('workers', 'audits', 'paused_jobs', 'schema_migrations') AND relname !~ '^seal'),
  columns AS (
    SELECT name, attname AS col, CASE WHEN attidentity = 'a' THEN 'DEFAULT' ELSE
           'coalesce((SELECT o.%2$I FROM %1$I AS o WHERE o.%2$I <> x.%2$I ORDER BY o.%2$I LIMIT 1), '
           || CASE typcategory WHEN 'N' THEN 'coalesce(x.%2$I, 0) + 1' WHEN 'D' THEN 'coalesce(x.%2$I, now()) + interval $q$1 hour$q$' WHEN 'B' THEN 'NOT x.%2$I'
                               WHEN 'A' THEN '$q${7}$q$' WHEN 'U' THEN '$q${}$q$' ELSE 'coalesce(x.%2$I, $q$$q$) || $q$x$q$' END || ')' END AS other
      FROM tables AS t JOIN pg_attribute ON attrelid = t.oid AND attnum > 0 AND NOT attisdropped AND attgenerated = '' JOIN pg_type ON pg_type.oid = atttypid)
  SELECT name || '.' || col,
         format('UPDATE %1$I AS x SET %2$I = ' || other || ' WHERE (x.tableoid, x.ctid) = (SELECT tableoid, ctid FROM %1$I AS o ORDER BY (%2$I IS NULL), o::text LIMIT 1)', name, col)
    FROM columns
   UNION ALL
  SELECT name || ' ' || way, format(template, name, (SELECT string_agg(quote_ident(col), ', ') FROM columns AS c WHERE c.name = t.name))
    FROM tables AS t, (VALUES ('less', 'DELETE FROM %1$I WHERE (tableoid, ctid) = (SELECT tableoid, ctid FROM %1$I AS o ORDER BY o::text LIMIT 1)'),
                         ('twice', 'INSERT INTO %1$I (%2$s) OVERRIDING SYSTEM VALUE SELECT %2$s FROM %1$I AS o ORDER BY o::text LIMIT 1')) AS v (way, template);
$tampers$;
-- The first invariant that a change breaks, or the SQLSTATE that refuses it; null: neither. Without `p_audited` only what refuses it.
CREATE FUNCTION pg_temp.found_by(p_change text, p_audited boolean) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  v_is     record;
  v_is_any boolean;
BEGIN
  DISCARD PLANS;
  SET CONSTRAINTS ALL IMMEDIATE;
  EXECUTE p_change;
  FOR v_is IN SELECT * FROM t.invariants WHERE p_audited AND name NOT IN ('schema_as_built', 'months_as_built', 'sealed_rows_keep_their_sums') ORDER BY name LOOP
    EXECUTE format('SELECT EXISTS (%s)', v_is.sql) INTO v_is_any;
    IF v_is_any THEN
      RAISE EXCEPTION SQLSTATE 'TUNDO' USING MESSAGE = v_is.name;
    END IF;
  END LOOP;
  RAISE EXCEPTION SQLSTATE 'TUNDO' USING MESSAGE = '';
EXCEPTION WHEN OTHERS THEN
  RETURN CASE SQLSTATE WHEN 'TUNDO' THEN nullif(SQLERRM, '') ELSE SQLSTATE END;
END $$;

-- Guarantee: A row that is changed behind the program's back is found by the audit or refused by the schema.
BEGIN; SELECT t.test('each_change_is_found_or_refused');
SET LOCAL ledgerlock.repair = on;
\ir audit/rows.sql
\ir audit/cards.sql
\ir audit/events.sql
\ir audit/corrections.sql
RESET ledgerlock.repair;
CREATE TEMP TABLE found AS SELECT what, change, pg_temp.found_by(change, false) AS refused, NULL AS invariant FROM pg_temp.tampers();
SET LOCAL ledgerlock.repair = on;
SELECT set_config('ledgerlock.now', '2024-04-10Z', true), set_config('ledgerlock.lag', '1 hour', true), set_config('ledgerlock.sealed', 'on', true);
SELECT pg_temp.unguard();
UPDATE found SET invariant = pg_temp.found_by(change, true);
CREATE TEMP VIEW by_table AS SELECT split_part(replace(what, ' ', '.'), '.', 1) AS of, * FROM found;
SELECT is(array_agg(what ORDER BY what), '{feed_base.base,lock_token.last,stock.fence,stock.unit_price_minor}', 'neither: counters and fences, which may rise, and a price, whose change has its event')
  FROM found WHERE refused !~ '^23' IS NOT FALSE AND invariant IS NULL;
SELECT is(string_agg(substr(what, length(of) + 2), ' ' ORDER BY what), words, 'refused, and found by no invariant: ' || t) FROM (VALUES
  ('users', 'external_ref'), ('stock', 'twice currency sku'), ('subscriptions', NULL), ('charges', 'tries'), ('order_lines', NULL),
  ('orders', 'reason recorded_at request_hash skus'), ('wallet_entries', 'at entry_id idempotency_key of_kind reason recorded_at worker'),
  ('stock_entries', 'at cell entry_id idempotency_key kind recorded_at worker'), ('batches', 'batch_id feed_no ids periods recorded_at'),
  ('subscription_terms', 'plan quantity recorded_at unit_minor')) AS v (t, words) LEFT JOIN by_table ON of = t AND invariant IS NULL AND refused IS NOT NULL GROUP BY t, words;
SELECT ok(count(*) > 180, 'each column of each table was changed') FROM found;
ROLLBACK;

SELECT t.done(215);
