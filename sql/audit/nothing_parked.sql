-- No subscription, order or payment is parked.
-- A worker parks a row that breaks a constraint, names no user or SKU, or killed its workers; a person must decide.
SELECT format('subscription %s', subscription_id) AS what, 'period ' || next_period_no AS detail
  FROM subscriptions
 WHERE state = 'parked'
 UNION ALL
SELECT format('order %s', order_id), 'placed ' || placed_at
  FROM orders
 WHERE state = 'parked'
 UNION ALL
SELECT format('payment %s', payment_id), format('%s %s/%s', kind, source, leg)
  FROM payments
 WHERE state = 'parked'
 ORDER BY what;
