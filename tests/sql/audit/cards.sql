-- Somebody pays by card in this world, beside those of rows.sql: user 19, whose first period and order 91 are paid, and whose order 92 is paying.
INSERT INTO users (user_id, currency, card_customer, card_method) VALUES (19, 'USD', 'cus_9', 'pm_9');
INSERT INTO subscriptions (subscription_id, user_id, plan, amount_minor, currency, anchor_at, unit, next_period_no, next_due_at)
VALUES (29, 19, 'card', 700, 'USD', '2024-03-15Z', 'month', 1, '2024-04-15Z');
INSERT INTO charges (subscription_id, period_no, user_id, period_start, period_end, amount_minor, state, tries, fence, worker, charged_at)
VALUES (29, 0, 19, '2024-03-15Z', '2024-04-15Z', 700, 'paid', 1, 1099511627790, 'pool-2', '2024-03-15 00:00:01Z');
INSERT INTO payments (kind, source, leg, attempt_no, user_id, source_at, amount_minor, currency, customer, method, state, calls,
                      first_sent_at, asked_at, due_at, reference, planned_fence, fence, worker, at)
VALUES ('charge', 29, 0, 1, 19, '2024-03-15Z', 700, 'USD', 'cus_9', 'pm_9', 'captured', 1, now(), now(), now(), 'pi_9', 1099511627789,
        1099511627790, 'pool-2', '2024-03-15 00:00:01Z'),
       ('payment', 91, 0, 1, 19, '2024-03-16Z', 40, 'USD', 'cus_9', 'pm_9', 'captured', 1, now(), now(), now(), 'pi_91', 1099511627791,
        1099511627792, 'pool-2', '2024-03-16 00:00:01Z'),
       ('payment', 92, 0, 1, 19, '2024-04-10Z', 80, 'USD', 'cus_9', 'pm_9', 'unknown', 1, now(), now(), now(), NULL, 1099511627793,
        1099511627793, 'pool-2', '2024-04-10Z');
INSERT INTO stock (sku_id, sku, initial_qty, on_hand, held, unit_price_minor, currency, fence) VALUES (90, 'Z', 10, 9, 2, 40, 'USD', 1099511627784);
INSERT INTO orders (order_id, user_id, idempotency_key, request_hash, state, total_minor, currency, placed_at, fence, decided_at, by_card)
VALUES (91, 19, 'k91', '', 'fulfilled', 40, 'USD', '2024-03-16Z', 1099511627792, '2024-03-16 00:00:01Z', true),
       (92, 19, 'k92', '', 'paying', 80, 'USD', '2024-04-10Z', 1099511627793, NULL, true);
INSERT INTO order_lines (order_id, sku_id, unit_price_minor, qty) VALUES (91, 90, 40, 1), (92, 90, 40, 2);
