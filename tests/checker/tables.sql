-- The final rows, as whole numbers, in one snapshot; nothing is decided here but the sums of orders. No view is read.
-- psql reads this: each line \echo names a table and its columns. :'now' is the instant, :schema has the tables, :first is done before.
SET search_path = :"schema";
BEGIN ISOLATION LEVEL REPEATABLE READ;
\if :{?first}
SET ledgerlock.repair = on; -- also what the triggers refuse
:first ;
\endif
\echo = now us
SELECT (extract(epoch FROM :'now'::timestamptz) * 1000000)::bigint;
\echo = subs id anchor unit every cancel state amount user
SELECT subscription_id, (extract(epoch FROM anchor_at) * 1000000)::bigint, ascii(unit), every,
  coalesce((extract(epoch FROM cancel_at) * 1000000)::bigint, 0),
  CASE WHEN state IN ('active', 'past_due', 'unpaid', 'cancelled') THEN 0 ELSE 3 END, amount_minor, user_id FROM subscriptions;
\echo = charges sub period amount captured fence user by_card
SELECT subscription_id, period_no, amount_minor, (state IN ('captured', 'paid'))::int, fence, user_id, (state = 'paid' OR EXISTS (SELECT FROM payments
  WHERE kind = 'charge' AND source = subscription_id AND leg = period_no AND state = 'declined'))::int FROM charges ORDER BY 1, 2, 4;
\echo = orders id state fence by_card
SELECT order_id, CASE state WHEN 'pending' THEN CASE WHEN placed_at <= :'now' THEN 0 ELSE 4 END WHEN 'paying' THEN 0
  WHEN 'fulfilled' THEN 1 WHEN 'rejected' THEN 2 ELSE 3 END, fence, by_card::int FROM orders;

-- Attempts to take money from cards, and to give it back; the currency as the number of its letters.
\echo = payments id kind source leg user amount currency captured decided fence planned
SELECT payment_id, ascii(kind), source, leg, user_id, amount_minor, ('x' || encode(convert_to(currency::text, 'UTF8'), 'hex'))::bit(24)::int,
  (state = 'captured')::int, (state IN ('captured', 'declined', 'void', 'parked'))::int, fence, planned_fence FROM payments;

-- Of each order its total, and what its lines cost; of each wallet and SKU what is left.
\echo = totals order there should
SELECT order_id, total_minor, coalesce(sum(qty * l.unit_price_minor), 0)::bigint
FROM orders LEFT JOIN order_lines AS l USING (order_id) GROUP BY 1, 2;
\echo = wallets user there
SELECT user_id, balance_minor FROM users;
\echo = shelves sku there
SELECT sku_id, on_hand FROM stock;

-- Units of an order by card are held before they are sold, and no line tells when: its transaction is -1.
-- Money of users and sales of SKUs, by their tokens; every change of wallets and SKUs, also by clients.
\echo = user_writes key xid order value
SELECT user_id, xmin::text::bigint, 0, fence FROM charges WHERE state = 'captured'
UNION ALL SELECT user_id, xmin::text::bigint, 0, fence FROM orders WHERE state = 'fulfilled' AND NOT by_card;
\echo = sku_writes key xid order value
SELECT sku_id, o.xmin::text::bigint, 0, fence FROM order_lines JOIN orders AS o USING (order_id) WHERE state = 'fulfilled' AND NOT by_card;
\echo = money key xid order value
SELECT user_id, xmin::text::bigint, 0, amount_minor FROM wallet_entries
UNION ALL SELECT user_id, xmin::text::bigint, 0, -amount_minor FROM charges WHERE state = 'captured'
UNION ALL SELECT user_id, xmin::text::bigint, order_id, -total_minor FROM orders WHERE state = 'fulfilled' AND NOT by_card;
\echo = goods key xid order value
SELECT sku_id, 0, 0, initial_qty FROM stock
UNION ALL SELECT sku_id, CASE WHEN by_card THEN -1 ELSE o.xmin::text::bigint END, order_id, -qty FROM order_lines JOIN orders AS o USING (order_id)
  WHERE state = 'fulfilled'
UNION ALL SELECT sku_id, xmin::text::bigint, 0, qty FROM stock_entries;

-- Charges that wallets were too short for; orders that were rejected, by wallet and by SKU. Of units that were held and became free
-- again nobody tells when.
\echo = declined id xid key wanted
SELECT subscription_id, xmin::text::bigint, user_id, amount_minor FROM charges WHERE state = 'declined' AND NOT EXISTS (SELECT FROM payments
  WHERE kind = 'charge' AND source = subscription_id AND leg = period_no AND state = 'declined');
\echo = poor id xid key wanted
SELECT order_id, xmin::text::bigint, user_id, total_minor FROM orders WHERE reason = 'insufficient_funds';
\echo = shortages id xid key wanted
SELECT o.order_id, o.xmin::text::bigint, s.sku_id, coalesce((SELECT sum(qty) FROM order_lines AS l
  WHERE l.order_id = o.order_id AND l.sku_id = s.sku_id), 0)::bigint
FROM orders AS o, unnest(o.skus) AS short JOIN stock AS s ON s.sku = short WHERE reason = 'out_of_stock' AND NOT EXISTS (SELECT FROM payments
  JOIN order_lines ON order_id = source WHERE kind = 'payment' AND state IN ('declined', 'void') AND sku_id = s.sku_id);
