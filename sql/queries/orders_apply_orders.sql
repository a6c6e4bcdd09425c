-- Serves the orders of the batch in the order they were placed: re-reads stock and wallets, decides, and
-- writes every effect. Users and SKUs must have been claimed by earlier statements of this transaction.
-- Quantities are summed per SKU first. An order is rejected when a line asks for more than is on hand now,
-- or its total is more than the wallet holds now: neither grows inside a batch. It is fulfilled when it
-- fits together with all orders before it that are not rejected. One that is neither is deferred to the
-- next batch, where it is among the first: so every batch decides at least the oldest order of each SKU.
-- Decided by windows over the lines (sorts, no join of one step with another, whose sizes no planner knows);
-- line 1 of an order stands for the order. Rows that were read are written again by their place (ctid).
-- $1 bigint: token. $2 timestamptz: now (null: the database's clock). $3 bigint[]: order ids.
-- Columns: fulfilled, rejected, deferred, effects decided, effects written (must be equal).
-- Guards: users.fence and stock.fence <= $1; state of the order; unique (sku, kind, source) of movements;
-- unique (kind, source, leg) of transfers; on_hand >= 0; balance >= 0.
WITH instant AS (
  SELECT coalesce($2::timestamptz, now()) AS now
), wanted AS (
  SELECT o.ctid AS place, o.order_id, o.total_minor, o.currency, o.user_id, u.ctid AS wallet, u.balance_minor,
         l.sku_id, l.qty, s.ctid AS shelf, s.sku, s.on_hand,
         row_number() OVER (PARTITION BY o.order_id ORDER BY s.sku) AS line
    FROM ledgerlock.orders AS o
    JOIN ledgerlock.users AS u ON u.user_id = o.user_id
    LEFT JOIN LATERAL (SELECT sku_id, sum(qty)::bigint AS qty FROM ledgerlock.order_lines
                        WHERE order_id = o.order_id GROUP BY sku_id) AS l ON true
    LEFT JOIN LATERAL (SELECT ctid, sku, on_hand FROM ledgerlock.stock
                        WHERE sku_id = l.sku_id OFFSET 0) AS s ON true -- OFFSET 0: one lookup by key for each
   WHERE o.order_id = ANY ($3::bigint[]) AND o.state = 'pending' AND u.fence <= $1::bigint
), judged AS (
  SELECT *, total_minor > balance_minor AS is_dear,
         array_agg(sku) FILTER (WHERE coalesce(qty > on_hand, sku_id IS NOT NULL))
           OVER (PARTITION BY order_id ORDER BY sku ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS short
    FROM wanted
), running AS (
  SELECT *, short IS NOT NULL OR is_dear AS rejected,
         sum(qty) FILTER (WHERE short IS NULL AND NOT is_dear) OVER (PARTITION BY sku_id ORDER BY order_id) AS used
    FROM judged
), summed AS (
  SELECT *, sum(total_minor) FILTER (WHERE NOT rejected AND line = 1) OVER (PARTITION BY user_id ORDER BY order_id) AS spent,
         coalesce(bool_and(used <= on_hand) OVER (PARTITION BY order_id), true) AS stock_lasts
    FROM running
), decided AS MATERIALIZED (
  SELECT *, NOT rejected AND stock_lasts AND spent <= balance_minor AS fulfilled FROM summed
), closed AS (
  UPDATE ledgerlock.orders AS o
     SET state = CASE WHEN d.fulfilled THEN 'fulfilled' ELSE 'rejected' END,
         reason = CASE WHEN d.short IS NOT NULL THEN 'out_of_stock' WHEN d.rejected THEN 'insufficient_funds' END,
         skus = d.short, decided_at = (SELECT now FROM instant), fence = $1
    FROM decided AS d
   WHERE d.line = 1 AND (d.fulfilled OR d.rejected)
     AND o.ctid = d.place AND o.order_id = d.order_id AND o.state = 'pending'
  RETURNING 1
), deducted AS (
  UPDATE ledgerlock.stock AS s
     SET on_hand = s.on_hand - t.qty, fence = $1
    FROM (SELECT sku_id, shelf, sum(qty)::bigint AS qty FROM decided WHERE fulfilled AND sku_id IS NOT NULL
           GROUP BY sku_id, shelf) AS t
   WHERE s.ctid = t.shelf AND s.sku_id = t.sku_id AND s.fence <= $1
  RETURNING 1
), moved AS (
  INSERT INTO ledgerlock.stock_movements (sku_id, kind, source, qty, fence, moved_at)
  SELECT sku_id, 'sale', order_id, -qty, $1, (SELECT now FROM instant)
    FROM decided
   WHERE fulfilled AND sku_id IS NOT NULL
  RETURNING 1
), paid AS (
  UPDATE ledgerlock.users AS u
     SET balance_minor = u.balance_minor - p.total_minor, fence = $1
    FROM (SELECT user_id, wallet, sum(total_minor)::bigint AS total_minor FROM decided WHERE fulfilled AND line = 1
           GROUP BY user_id, wallet) AS p
   WHERE u.ctid = p.wallet AND u.user_id = p.user_id AND u.fence <= $1
  RETURNING 1
), booked AS (
  INSERT INTO ledgerlock.transfers (kind, source, leg, user_id, debit, credit, amount_minor, currency, moved_at)
  SELECT 'payment', order_id, 0, user_id, 'wallet', 'order_revenue', total_minor, currency, (SELECT now FROM instant)
    FROM decided
   WHERE fulfilled AND line = 1 AND total_minor > 0
  RETURNING 1
), written AS (
  SELECT (SELECT count(*) FROM closed) + (SELECT count(*) FROM booked) + (SELECT count(*) FROM paid)
       + (SELECT count(*) FROM moved) + (SELECT count(*) FROM deducted) AS n
)
SELECT count(*) FILTER (WHERE line = 1 AND fulfilled), count(*) FILTER (WHERE line = 1 AND rejected),
       count(*) FILTER (WHERE line = 1 AND NOT fulfilled AND NOT rejected),
       count(*) FILTER (WHERE line = 1 AND (fulfilled OR rejected))
         + count(*) FILTER (WHERE line = 1 AND fulfilled AND total_minor > 0)
         + count(DISTINCT user_id) FILTER (WHERE fulfilled)
         + count(sku_id) FILTER (WHERE fulfilled) + count(DISTINCT sku_id) FILTER (WHERE fulfilled),
       (SELECT n FROM written)
  FROM decided
