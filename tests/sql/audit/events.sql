-- Makes batches, events and contracts of the world of the audit anew, as if the program had written what the tables say.
UPDATE orders SET decided_at = placed_at WHERE state IN ('fulfilled', 'rejected') AND decided_at IS NULL;
DELETE FROM batches;
ALTER TABLE events DISABLE TRIGGER USER;
DELETE FROM events;
ALTER TABLE events ENABLE TRIGGER USER;
DELETE FROM contracts;
INSERT INTO contracts (user_id, plan, anchor_at, subscription_id) SELECT user_id, plan, anchor_at, subscription_id FROM subscriptions;
INSERT INTO events (event, subscription_id, state, next_period_no, retries, next_due_at, user_id, try_no, amount_minor, token, worker, at)
       SELECT CASE WHEN n = tries AND c.state <> 'written_off' THEN c.state ELSE 'declined' END, c.subscription_id, 'past_due',
       period_no + (c.state = 'captured' AND n = tries)::int, n, charged_at, c.user_id, n, c.amount_minor, c.fence, worker, charged_at
       FROM charges AS c, generate_series(1, tries) AS n WHERE c.state IN ('declined', 'written_off') OR tries > 1 ORDER BY 2, period_no, n;
INSERT INTO events (event, subscription_id, state, next_period_no, retries, next_due_at, user_id, from_period, idempotency_key, amount_minor, reason,
       worker, at) SELECT state, subscription_id, 'active', period_no + 1, 0, charged_at, user_id, period_no,
       CASE state WHEN 'written_off' THEN 'w' || period_no END, amount_minor, CASE state WHEN 'written_off' THEN 'gone' END, worker, charged_at
       FROM charges WHERE state IN ('waived', 'skipped', 'written_off') ORDER BY 2, period_no;
INSERT INTO events (event, subscription_id, state, next_period_no, retries, next_due_at, cancel_at, user_id)
       SELECT 'made', subscription_id, state, next_period_no, retries, next_due_at, cancel_at, user_id FROM subscriptions;
INSERT INTO events (event, subscription_id, state, next_period_no, retries, next_due_at, cancel_at, user_id, from_period, worker)
       SELECT 'terms', subscription_id, state, next_period_no, retries, next_due_at, cancel_at, user_id, from_period, worker
       FROM subscription_terms JOIN subscriptions USING (subscription_id) ORDER BY terms_id;
INSERT INTO events (event, order_id, state, reason, user_id, token, worker, at)
       SELECT state, order_id, state, reason, user_id, fence, 'pool-0', coalesce(decided_at, placed_at)
       FROM orders WHERE state IN ('parked', 'cancelled') OR (state = 'rejected' AND fence = 0);
INSERT INTO events (event, user_id, reason) SELECT 'pays_with', user_id, card_customer || ' ' || card_method FROM users WHERE card_customer IS NOT NULL;
INSERT INTO events (event, user_id, at) SELECT 'closed', user_id, closed_at FROM users WHERE closed_at IS NOT NULL;
INSERT INTO batches (job, token, worker, at, done, refused, ids, periods, feed_no) SELECT *, row_number() OVER ()
       FROM ( SELECT 'billing', fence, worker, charged_at, count(*), 0, array_agg(subscription_id), array_agg(period_no)
       FROM charges WHERE state = 'captured' GROUP BY 2, 3, 4 UNION ALL
       SELECT 'billing', token, worker, at, 0, count(*), array_agg(subscription_id), array_agg(next_period_no)
       FROM events WHERE event = 'declined' GROUP BY 2, 3, 4 UNION ALL
       SELECT 'payments', fence, worker, charged_at, count(*), 0, array_agg(subscription_id), array_agg(period_no)
       FROM charges WHERE state = 'paid' GROUP BY 2, 3, 4 UNION ALL
       SELECT 'orders', fence, 'pool-0', decided_at, count(*) FILTER (WHERE state = 'fulfilled'), count(*) FILTER (WHERE state = 'rejected'),
       array_agg(order_id), NULL FROM orders WHERE state IN ('fulfilled', 'rejected') AND fence <> 0 GROUP BY 2, 4) AS made;
