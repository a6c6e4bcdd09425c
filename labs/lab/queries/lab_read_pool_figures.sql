-- The end of the pool's rows, by the rows themselves. $1 bigint: periods due of each subscription.
-- Columns: periods charged twice, periods missed, units sold that were not there, orders
-- undecided. Locks: none.
SELECT (SELECT count(*) - count(DISTINCT (subscription_id, period_no)) FROM charges),
       (SELECT count(*) FROM subscriptions) * $1::bigint
         - (SELECT count(DISTINCT (subscription_id, period_no)) FROM charges WHERE state = 'captured'),
       (SELECT coalesce(sum(greatest(sold - initial_qty, 0)), 0)::bigint
          FROM stock
          JOIN (SELECT sku_id, -sum(qty) AS sold FROM stock_ledger WHERE kind = 'sale' GROUP BY sku_id) AS m
         USING (sku_id)),
       (SELECT count(*) FROM orders WHERE state IN ('pending', 'parked'))
