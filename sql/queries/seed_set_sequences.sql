-- Lets the next row made by anyone continue behind the last number. Columns: four bigints. Locks: none.
SELECT setval(pg_get_serial_sequence('ledgerlock.users', 'user_id'), coalesce(u.n, 1), u.n IS NOT NULL),
       setval(pg_get_serial_sequence('ledgerlock.subscriptions', 'subscription_id'), coalesce(s.n, 1), s.n IS NOT NULL),
       setval(pg_get_serial_sequence('ledgerlock.stock', 'sku_id'), coalesce(k.n, 1), k.n IS NOT NULL),
       setval(pg_get_serial_sequence('ledgerlock.orders', 'order_id'), coalesce(o.n, 1), o.n IS NOT NULL)
  FROM (SELECT max(user_id) AS n FROM ledgerlock.users) AS u,
       (SELECT max(subscription_id) AS n FROM ledgerlock.subscriptions) AS s,
       (SELECT max(sku_id) AS n FROM ledgerlock.stock) AS k,
       (SELECT max(order_id) AS n FROM ledgerlock.orders) AS o
