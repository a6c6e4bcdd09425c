-- Serves the orders of the batch in the order they were placed: re-reads stock and wallets, decides, and
-- writes every effect. Users and SKUs must have been claimed by earlier statements of this transaction.
-- Quantities are summed per SKU first. An order is rejected when a line asks for more than is on hand now,
-- or its total is more than the wallet holds now: neither grows inside a batch. It is fulfilled when it
-- fits together with all orders before it that are not rejected. One that is neither is deferred to the
-- next batch, where it is among the first: so every batch decides at least the oldest order of each SKU.
-- $1 bigint: token. $2 timestamptz: now (null: the database's clock). $3 bigint[]: order ids.
-- Columns: fulfilled, rejected, deferred, effects decided, effects written (must be equal).
-- Guards: users.fence and stock.fence <= $1; state of the order; unique (sku, kind, source) of movements;
-- unique (kind, source, leg) of transfers; on_hand >= 0; balance >= 0.
WITH instant AS (
  SELECT coalesce($2::timestamptz, now()) AS now
), asked AS MATERIALIZED (
  SELECT o.order_id, o.user_id, o.total_minor, o.currency, u.balance_minor
    FROM ledgerlock.orders AS o
    JOIN ledgerlock.users AS u ON u.user_id = o.user_id
   WHERE o.order_id = ANY ($3::bigint[]) AND o.state = 'pending' AND u.fence <= $1::bigint
), wanted AS MATERIALIZED (
  SELECT l.order_id, l.sku_id, sum(l.qty)::bigint AS qty, s.sku, s.on_hand
    FROM asked
    JOIN ledgerlock.order_lines AS l ON l.order_id = asked.order_id
    JOIN ledgerlock.stock AS s ON s.sku_id = l.sku_id
   GROUP BY l.order_id, l.sku_id, s.sku, s.on_hand
), short AS (
  SELECT order_id, array_agg(sku ORDER BY sku) AS skus FROM wanted WHERE qty > on_hand GROUP BY order_id
), possible AS (
  SELECT a.*, sum(total_minor) OVER (PARTITION BY user_id ORDER BY order_id) <= balance_minor AS wallet_lasts
    FROM asked AS a
   WHERE total_minor <= balance_minor AND NOT EXISTS (SELECT FROM short WHERE short.order_id = a.order_id)
), stock_lasts AS (
  SELECT order_id, bool_and(used <= on_hand) AS lasts
    FROM (SELECT order_id, on_hand, sum(qty) OVER (PARTITION BY sku_id ORDER BY order_id) AS used
            FROM wanted JOIN possible USING (order_id)) AS running
   GROUP BY order_id
), decided AS MATERIALIZED (
  SELECT a.order_id, a.user_id, a.total_minor, a.currency, short.skus,
         CASE WHEN short.order_id IS NOT NULL OR a.total_minor > a.balance_minor THEN 'rejected'
              WHEN p.wallet_lasts AND coalesce(stock_lasts.lasts, true) THEN 'fulfilled' END AS verdict,
         CASE WHEN short.order_id IS NOT NULL THEN 'out_of_stock'
              WHEN a.total_minor > a.balance_minor THEN 'insufficient_funds' END AS reason
    FROM asked AS a
    LEFT JOIN short ON short.order_id = a.order_id
    LEFT JOIN possible AS p ON p.order_id = a.order_id
    LEFT JOIN stock_lasts ON stock_lasts.order_id = a.order_id
), sold AS MATERIALIZED (
  SELECT w.order_id, w.sku_id, w.qty FROM wanted AS w JOIN decided USING (order_id) WHERE verdict = 'fulfilled'
), closed AS (
  UPDATE ledgerlock.orders AS o
     SET state = d.verdict, reason = d.reason, skus = d.skus, decided_at = instant.now, fence = $1
    FROM decided AS d, instant
   WHERE d.verdict IS NOT NULL AND o.order_id = d.order_id AND o.state = 'pending'
  RETURNING 1
), deducted AS (
  UPDATE ledgerlock.stock AS s
     SET on_hand = s.on_hand - t.qty, fence = $1
    FROM (SELECT sku_id, sum(qty)::bigint AS qty FROM sold GROUP BY sku_id) AS t
   WHERE s.sku_id = t.sku_id AND s.fence <= $1
  RETURNING 1
), moved AS (
  INSERT INTO ledgerlock.stock_movements (sku_id, kind, source, qty, fence, moved_at)
  SELECT sku_id, 'sale', order_id, -qty, $1, instant.now FROM sold, instant
  RETURNING 1
), paid AS (
  UPDATE ledgerlock.users AS u
     SET balance_minor = u.balance_minor - p.total_minor, fence = $1
    FROM (SELECT user_id, sum(total_minor)::bigint AS total_minor
            FROM decided WHERE verdict = 'fulfilled' GROUP BY user_id) AS p
   WHERE u.user_id = p.user_id AND u.fence <= $1
  RETURNING 1
), booked AS (
  INSERT INTO ledgerlock.transfers (kind, source, leg, user_id, debit, credit, amount_minor, currency, moved_at)
  SELECT 'payment', order_id, 0, user_id, 'wallet', 'order_revenue', total_minor, currency, instant.now
    FROM decided, instant
   WHERE verdict = 'fulfilled' AND total_minor > 0
  RETURNING 1
)
SELECT (SELECT count(*) FROM decided WHERE verdict = 'fulfilled'),
       (SELECT count(*) FROM decided WHERE verdict = 'rejected'),
       (SELECT count(*) FROM decided WHERE verdict IS NULL),
       (SELECT count(verdict) + count(*) FILTER (WHERE verdict = 'fulfilled' AND total_minor > 0)
             + count(DISTINCT user_id) FILTER (WHERE verdict = 'fulfilled') FROM decided)
             + (SELECT count(*) + count(DISTINCT sku_id) FROM sold),
       (SELECT count(*) FROM closed) + (SELECT count(*) FROM booked) + (SELECT count(*) FROM paid)
             + (SELECT count(*) FROM moved) + (SELECT count(*) FROM deducted)
