-- Somebody pays by card in this world, beside those of rows.sql: user 19, whose first period is paid.
INSERT INTO users (user_id, currency, card_customer, card_method) VALUES (19, 'USD', 'cus_9', 'pm_9');
INSERT INTO subscriptions (subscription_id, user_id, plan, amount_minor, currency, anchor_at, unit, next_period_no, next_due_at)
VALUES (29, 19, 'card', 700, 'USD', '2024-03-15Z', 'month', 1, '2024-04-15Z');
INSERT INTO charges (subscription_id, period_no, user_id, period_start, period_end, amount_minor, state, tries, fence, worker, charged_at)
VALUES (29, 0, 19, '2024-03-15Z', '2024-04-15Z', 700, 'paid', 1, 1099511627790, 'pool-2', '2024-03-15 00:00:01Z');
INSERT INTO payments (subscription_id, period_no, attempt_no, user_id, period_start, amount_minor, currency, customer, method, state, calls,
                      first_sent_at, asked_at, due_at, reference, planned_fence, fence, worker, at)
VALUES (29, 0, 1, 19, '2024-03-15Z', 700, 'USD', 'cus_9', 'pm_9', 'captured', 1, now(), now(), now(), 'pi_9', 1099511627789,
        1099511627790, 'pool-2', '2024-03-15 00:00:01Z');
