-- No subscription and no order is parked.
-- A worker parks what met a broken invariant or killed its workers; a person must look at it.
SELECT format('subscription %s', subscription_id) AS what, 'period ' || next_period_no AS detail
  FROM ledgerlock.subscriptions
 WHERE state = 'parked'
 UNION ALL
SELECT format('order %s', order_id), 'placed ' || placed_at
  FROM ledgerlock.orders
 WHERE state = 'parked'
 ORDER BY what;
