-- Makes the journal of the world of the audit anew, as if the program had written what the tables say.
UPDATE orders SET decided_at = placed_at WHERE state IN ('fulfilled', 'rejected') AND decided_at IS NULL;
DELETE FROM batches;
DELETE FROM subscription_journal;
DELETE FROM order_journal;
DELETE FROM stock_journal;
DELETE FROM contracts;
INSERT INTO contracts (user_id, plan, anchor_at, subscription_id) SELECT user_id, plan, anchor_at, subscription_id FROM subscriptions;
INSERT INTO subscription_journal (subscription_id, event, state, next_period_no, retries, next_due_at, user_id, try_no, amount_minor, token, worker,
       at) SELECT c.subscription_id, CASE WHEN n = tries AND c.state <> 'written_off' THEN c.state ELSE 'declined' END, 'past_due',
       period_no + (c.state = 'captured' AND n = tries)::int, n, charged_at, c.user_id, n, c.amount_minor, c.fence, worker, charged_at
       FROM charges AS c, generate_series(1, tries) AS n WHERE c.state IN ('declined', 'written_off') OR tries > 1 ORDER BY 1, period_no, n;
INSERT INTO subscription_journal (subscription_id, event, state, next_period_no, retries, next_due_at, user_id, from_period, worker, at)
       SELECT subscription_id, state, 'active', period_no + 1, 0, charged_at, user_id, period_no, worker, charged_at
       FROM charges WHERE state IN ('waived', 'skipped', 'written_off') ORDER BY 1, period_no;
INSERT INTO subscription_journal (subscription_id, event, state, next_period_no, retries, next_due_at, cancel_at, user_id, amount_minor, plan,
       currency, anchor_at, unit, every, trial_periods)
       SELECT subscription_id, 'made', state, next_period_no, retries, next_due_at, cancel_at, user_id, amount_minor, plan, currency, anchor_at,
       unit, every, trial_periods FROM subscriptions;
INSERT INTO subscription_journal (subscription_id, event, state, next_period_no, retries, next_due_at, cancel_at, user_id, from_period, plan,
       quantity, amount_minor, worker) SELECT s.subscription_id, 'terms', state, next_period_no, retries, next_due_at, cancel_at, user_id,
       t.from_period, t.plan, t.quantity, t.unit_minor, t.worker FROM subscription_terms AS t JOIN subscriptions AS s USING (subscription_id) ORDER BY t.terms_id;
INSERT INTO order_journal (order_id, event, state, reason, skus, user_id, total_minor, token, worker, at)
       SELECT order_id, CASE WHEN state = 'cancelled' OR (state = 'rejected' AND fence <> 0) THEN state ELSE 'made' END, state, reason, skus,
       user_id, total_minor, fence, 'pool-0', coalesce(decided_at, placed_at) FROM orders WHERE state IN ('rejected', 'parked', 'cancelled');
INSERT INTO stock_journal (sku_id, event, sku, initial_qty, unit_price_minor, currency)
       SELECT sku_id, 'made', sku, initial_qty, unit_price_minor, currency FROM stock;
INSERT INTO batches (job, token, worker, at, done, refused, ids, periods, feed_no) SELECT *, row_number() OVER ()
       FROM ( SELECT 'billing', fence, worker, charged_at, count(*), 0, array_agg(subscription_id), array_agg(period_no)
       FROM charges WHERE state = 'captured' GROUP BY 2, 3, 4 UNION ALL
       SELECT 'billing', token, worker, at, 0, count(*), array_agg(subscription_id), array_agg(next_period_no)
       FROM subscription_journal WHERE event = 'declined' GROUP BY 2, 3, 4 UNION ALL
       SELECT 'orders', fence, 'pool-0', decided_at, count(*) FILTER (WHERE state = 'fulfilled'), count(*) FILTER (WHERE state = 'rejected'),
       array_agg(order_id), NULL FROM orders WHERE state IN ('fulfilled', 'rejected') AND fence <> 0 GROUP BY 2, 4) AS made;
