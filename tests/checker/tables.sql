-- The final rows, as whole numbers, in one snapshot; nothing is decided here but sums, and which rows are pairs.
-- psql reads this: each line \echo names a table and its columns. :'now' is the instant, :first what is done before.
SET search_path = ledgerlock;
BEGIN ISOLATION LEVEL REPEATABLE READ;
\if :{?first}
SET ledgerlock.repair = on; -- also what the triggers refuse
:first ;
\endif
\echo = now us
SELECT (extract(epoch FROM :'now'::timestamptz) * 1000000)::bigint;
\echo = subs id anchor unit every cancel state amount
SELECT subscription_id, (extract(epoch FROM anchor_at) * 1000000)::bigint, ascii(unit), every,
  coalesce((extract(epoch FROM cancel_at) * 1000000)::bigint, 0),
  CASE WHEN state IN ('active', 'past_due', 'unpaid', 'cancelled') THEN 0 ELSE 3 END, amount_minor FROM subscriptions;
\echo = charges sub period amount captured fence
SELECT subscription_id, period_no, amount_minor, (state = 'captured')::int, fence FROM charges ORDER BY 1, 2, 4;
\echo = orders id state fence
SELECT order_id, CASE state WHEN 'pending' THEN CASE WHEN placed_at <= :'now' THEN 0 ELSE 4 END
  WHEN 'fulfilled' THEN 1 WHEN 'rejected' THEN 2 ELSE 3 END, fence FROM orders;

-- These are equal by pairs: charges and their transfers, orders and theirs, lines and their movements.
\echo = captured sub period amount user
SELECT subscription_id, period_no, amount_minor, user_id FROM charges WHERE state = 'captured';
\echo = booked sub period amount user
SELECT source, leg, amount_minor, user_id FROM ledger WHERE kind = 'charge';
\echo = fulfilled order amount user
SELECT order_id, total_minor, user_id FROM orders WHERE state = 'fulfilled' AND total_minor > 0;
\echo = paid order amount user
SELECT source, amount_minor, user_id FROM ledger WHERE kind = 'payment';
\echo = lines order sku qty
SELECT order_id, sku_id, sum(qty)::bigint FROM order_lines JOIN orders USING (order_id) WHERE state = 'fulfilled'
GROUP BY 1, 2;
\echo = moved order sku qty
SELECT source, sku_id, -qty FROM stock_ledger WHERE kind = 'sale';

-- In each row what is, and what should be.
\echo = totals order there should
SELECT order_id, total_minor, coalesce(sum(qty * l.unit_price_minor), 0)::bigint
FROM orders LEFT JOIN order_lines AS l USING (order_id) GROUP BY 1, 2;
\echo = wallets user there should
SELECT u.user_id, u.balance_minor,
  coalesce(sum(CASE WHEN t.kind = 'deposit' THEN t.amount_minor ELSE -t.amount_minor END), 0)::bigint
FROM users AS u LEFT JOIN ledger AS t USING (user_id) GROUP BY 1, 2;
\echo = shelves sku there should
SELECT s.sku_id, s.on_hand, (s.initial_qty + coalesce(sum(m.qty), 0))::bigint
FROM stock AS s LEFT JOIN stock_ledger AS m USING (sku_id) GROUP BY s.sku_id, s.on_hand, s.initial_qty;

-- Money of users and sales of SKUs, by their tokens; every change of wallets and SKUs, also by clients.
\echo = user_writes key xid order value
SELECT t.user_id, t.xmin::text::bigint, 0, coalesce(c.fence, o.fence, 0) FROM ledger AS t
LEFT JOIN charges AS c ON t.kind = 'charge' AND c.subscription_id = t.source AND c.period_no = t.leg
LEFT JOIN orders AS o ON t.kind = 'payment' AND o.order_id = t.source WHERE t.kind <> 'deposit';
\echo = sku_writes key xid order value
SELECT sku_id, xmin::text::bigint, 0, fence FROM stock_ledger WHERE kind = 'sale';
\echo = money key xid order value
SELECT user_id, xmin::text::bigint, CASE kind WHEN 'payment' THEN source ELSE 0 END,
  CASE debit WHEN 'wallet' THEN -amount_minor ELSE amount_minor END FROM ledger;
\echo = goods key xid order value
SELECT sku_id, xmin::text::bigint, CASE kind WHEN 'sale' THEN source ELSE 0 END, qty FROM stock_ledger
UNION ALL SELECT sku_id, 0, 0, initial_qty FROM stock;

-- Charges that were declined; orders that were rejected, by wallet and by SKU.
\echo = declined id xid key wanted
SELECT subscription_id, xmin::text::bigint, user_id, amount_minor FROM charges WHERE state = 'declined';
\echo = poor id xid key wanted
SELECT order_id, xmin::text::bigint, user_id, total_minor FROM orders WHERE reason = 'insufficient_funds';
\echo = shortages id xid key wanted
SELECT o.order_id, o.xmin::text::bigint, s.sku_id, coalesce((SELECT sum(qty) FROM order_lines AS l
  WHERE l.order_id = o.order_id AND l.sku_id = s.sku_id), 0)::bigint
FROM orders AS o, unnest(o.skus) AS short JOIN stock AS s ON s.sku = short WHERE reason = 'out_of_stock';
