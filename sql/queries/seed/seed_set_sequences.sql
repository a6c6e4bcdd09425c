-- Sets the sequences behind the highest ids that were loaded, and never before the first number of the cell.
-- Columns: a bigint for each. Locks: none.
SELECT setval(s.name, greatest(loaded.last, q.seqstart), coalesce(loaded.last >= q.seqstart, false))
  FROM (VALUES ('users', 'user_id', (SELECT max(user_id) FROM users)),
               ('subscriptions', 'subscription_id', (SELECT max(subscription_id) FROM subscriptions)),
               ('stock', 'sku_id', (SELECT max(sku_id) FROM stock)),
               ('orders', 'order_id', (SELECT max(order_id) FROM orders))) AS loaded (relation, id, last)
 CROSS JOIN LATERAL pg_get_serial_sequence(loaded.relation, loaded.id) AS s (name)
  JOIN pg_sequence AS q ON q.seqrelid = s.name::regclass
