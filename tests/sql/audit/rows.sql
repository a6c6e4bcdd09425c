-- The world of the audit: every invariant holds in it, and every total is known. Now is 2024-04-10 00:00 UTC.
SELECT make_months('2023-04-01Z', '2023-04-01Z'), make_months('2024-01-01Z', '2024-05-01Z');
INSERT INTO users (user_id, external_ref, balance_minor, currency, fence)
VALUES (1, 'ann', 5700, 'USD', 1099511627785),
       (2, 'bob', 500, 'USD', 1099511627782),
       (3, 'eve', 4010, 'EUR', 1099511627784);
INSERT INTO subscriptions (subscription_id, user_id, plan, amount_minor, currency, anchor_at, unit, every, state, next_period_no, next_due_at,
       cancel_at, retries)
VALUES (1, 1, 'pro', 1000, 'USD', '2024-01-31 00:00Z', 'month', 1, 'active', 3, '2024-04-30 00:00Z', NULL, 0),
       (2, 1, 'weekly', 200, 'USD', '2024-03-01 00:00Z', 'week', 2, 'cancelled', 2, '2024-03-29 00:00Z', '2024-03-29 00:00Z', 0),
       (3, 2, 'pro', 1000, 'USD', '2024-02-15 00:00Z', 'month', 1, 'past_due', 1, '2024-04-12 00:00Z', NULL, 2),
       (4, 3, 'ten', 300, 'EUR', '2024-03-22 00:00Z', 'day', 10, 'active', 2, '2024-04-11 00:00Z', NULL, 0),
       (5, 3, 'year', 5000, 'EUR', '2023-04-09 23:30Z', 'year', 1, 'active', 1, '2024-04-09 23:30Z', NULL, 0),
       (6, 2, 'max', 9000, 'USD', '2024-03-10 00:00Z', 'month', 1, 'unpaid', 0, '2024-04-02 00:00Z', NULL, 4),
       (7, 2, 'later', 100, 'USD', '2024-05-31 00:00Z', 'month', 1, 'active', 0, '2024-05-31 00:00Z', NULL, 0),
       (8, 2, 'rest', 700, 'USD', '2024-01-05 00:00Z', 'month', 1, 'active', 5, '2024-06-05 00:00Z', NULL, 0),
       (9, 2, 'lost', 100, 'USD', '2024-03-20 00:00Z', 'month', 1, 'active', 1, '2024-04-20 00:00Z', NULL, 0);
INSERT INTO charges VALUES (9, 0, 2, '2024-03-20Z', '2024-04-20Z', 100, 'written_off', 1, 1099511627778, 'support', '2024-04-06Z');
INSERT INTO charges SELECT 8, no, 2, period_start('2024-01-05Z', 'month', 1, no), period_start('2024-01-05Z', 'month', 1, no + 1), 700,
       CASE WHEN no < 3 THEN 'waived' ELSE 'skipped' END, 0, 0, 'support', '2024-04-06Z' FROM generate_series(0, 4) AS no;
INSERT INTO subscription_terms (subscription_id, from_period, plan, quantity, unit_minor) VALUES (4, 1, 'two', 2, 1), (4, 1, 'two', 2, 150);
UPDATE subscriptions SET terms_from_no = 1 WHERE subscription_id = 4;
INSERT INTO subscription_terms (subscription_id, from_period, plan, quantity, unit_minor) VALUES (1, 3, 'max', 1, 1302), (1, 3, 'pro', 1, 1000);
UPDATE subscriptions SET terms_from_no = 3 WHERE subscription_id = 1;
INSERT INTO wallet_entries (user_id, kind, idempotency_key, amount_minor, of_kind, of_source, of_leg, of_at, of_minor, terms_id, old_minor, at)
SELECT 1, 'proration', key, taken, 'charge', 1, 2, '2024-03-31', 1000, terms_id, old, day
  FROM subscription_terms JOIN (VALUES ('max', 'up', -201, 1000, '2024-04-09 12:00Z'::timestamptz), ('pro', 'down', 201, 1302, '2024-04-09 18:00Z'))
                                AS v (plan, key, taken, old, day) USING (plan) WHERE subscription_id = 1 ORDER BY terms_id;
INSERT INTO charges SELECT s.subscription_id, no, s.user_id, period_start(anchor_at, unit, every, no), period_start(anchor_at, unit, every, no + 1),
       s.amount_minor, c.state, greatest(s.retries * (c.state = 'declined')::int, 1), 1099511627777, 'pool-0', period_start(anchor_at, unit, every,
       no) + interval '1 second' FROM (VALUES (1, 0, 2, 'captured'), (2, 0, 1, 'captured'), (3, 0, 0, 'captured'), (3, 1, 1, 'declined'), (4, 0, 1,
       'captured'), (5, 0, 0, 'captured'), (6, 0, 0, 'declined')) AS c (id, low, high, state)
       JOIN subscriptions AS s ON s.subscription_id = c.id, generate_series(low, high) AS no;
INSERT INTO stock (sku_id, sku, initial_qty, on_hand, unit_price_minor, currency, fence)
VALUES (1, 'A', 10, 13, 250, 'USD', 1099511627781),
       (2, 'B', 2, 1, 400, 'USD', 1099511627781),
       (3, 'C', 5, 1, 100, 'EUR', 1099511627784),
       (4, 'D', 3, 2, 0, 'USD', 1099511627785);
INSERT INTO orders (order_id, user_id, idempotency_key, request_hash, state, reason, skus, total_minor, currency, placed_at, fence, decided_at)
VALUES (1, 1, 'k1', '', 'fulfilled', NULL, NULL, 900, 'USD', '2024-04-01', 1099511627781, '2024-04-01'),
       (2, 1, 'k2', '', 'rejected', 'out_of_stock', '{B}', 2000, 'USD', '2024-04-02', 1099511627782, '2024-04-02'),
       (3, 2, 'k1', '', 'rejected', 'insufficient_funds', NULL, 750, 'USD', '2024-04-03', 1099511627782, '2024-04-03'),
       (4, 1, 'k4', '', 'rejected', 'unknown_sku', '{Z}', 0, 'USD', '2024-04-04', 0, '2024-04-04'),
       (5, 3, 'k1', '', 'fulfilled', NULL, NULL, 390, 'EUR', '2024-04-05', 1099511627784, '2024-04-05'),
       (6, 1, 'k6', '', 'pending', NULL, NULL, 250, 'USD', '2024-04-09 23:45Z', 0, NULL),
       (7, 1, 'k7', '', 'fulfilled', NULL, NULL, 0, 'USD', '2024-04-07', 1099511627785, '2024-04-07'),
       (8, 1, 'k8', '', 'cancelled', NULL, NULL, 250, 'USD', '2024-04-08', 0, NULL);
INSERT INTO order_lines (order_id, sku_id, qty, unit_price_minor)
VALUES (1, 1, 2, 250),
       (1, 2, 1, 400),
       (2, 2, 5, 400),
       (3, 1, 3, 250),
       (5, 3, 3, 100),
       (5, 3, 1, 90),
       (6, 1, 1, 250),
       (7, 4, 1, 0),
       (8, 1, 1, 250);
INSERT INTO stock_entries (sku_id, kind, idempotency_key, qty, at) VALUES (1, 'delivery', '1', 5, '2024-03-01');
INSERT INTO wallet_entries (user_id, kind, idempotency_key, amount_minor, at)
VALUES (1, 'deposit', '1', 9000, '2024-01-01'),
       (1, 'deposit', '2', 1000, '2024-02-01'),
       (2, 'deposit', '3', 1500, '2024-01-01'),
       (3, 'deposit', '', 10000, '2024-01-01');
INSERT INTO workers (pool, slot, job, host, pid, started_at, seen_at, counters)
VALUES ('pool', 0, 'billing', 'host', 10, now(), now(), '{"granted": 7, "busy": 2, "charged": 5, "batches": 3}'),
       ('pool', 1, 'orders', 'host', 11, now(), now() - interval '1 minute', '{"granted": 4, "restarts": 1, "fulfilled": 3}');
INSERT INTO lock_incidents (resource, token, worker, kind, phase) VALUES ('lock:user:1', 7, 'pool-0', 'fenced', 'claim');
