-- What became of the pool's rows, by the rows themselves. $1 bigint: periods due of each subscription.
-- Columns: periods charged twice (by the money moved), periods missed, units sold that were not there, orders
-- undecided, batches that were refused or given up. Locks: none.
SELECT (SELECT count(*) - count(DISTINCT (source, leg)) FROM ledgerlock.transfers WHERE kind = 'charge')
         + (SELECT count(*) - count(DISTINCT (subscription_id, period_no)) FROM ledgerlock.charges),
       (SELECT count(*) FROM ledgerlock.subscriptions) * $1::bigint
         - (SELECT count(DISTINCT (subscription_id, period_no)) FROM ledgerlock.charges WHERE state = 'captured'),
       (SELECT coalesce(sum(greatest(sold - initial_qty, 0)), 0)::bigint
          FROM ledgerlock.stock
          JOIN (SELECT sku_id, -sum(qty) AS sold FROM ledgerlock.stock_movements WHERE kind = 'sale' GROUP BY sku_id) AS m
         USING (sku_id)),
       (SELECT count(*) FROM ledgerlock.orders WHERE state IN ('pending', 'parked')),
       (SELECT count(*) FROM ledgerlock.lock_incidents WHERE kind IN ('lost', 'fenced'))
         + (SELECT coalesce(sum((counters ->> 'conflicts')::bigint), 0)::bigint FROM ledgerlock.workers)
