-- Tables that are not empty. Columns: names text, "users, orders", null when all are empty. Locks: none.
-- Serves: made-up rows never mix with real ones.
SELECT string_agg(name, ', ')
  FROM (SELECT 'users' AS name WHERE EXISTS (SELECT FROM users)
        UNION ALL SELECT 'subscriptions' WHERE EXISTS (SELECT FROM subscriptions)
        UNION ALL SELECT 'stock' WHERE EXISTS (SELECT FROM stock)
        UNION ALL SELECT 'orders' WHERE EXISTS (SELECT FROM orders)) AS filled
