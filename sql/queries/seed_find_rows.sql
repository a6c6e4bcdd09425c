-- Tables that hold anything. Columns: names text, "users, orders", null when all are empty. Locks: none.
-- Serves: made-up rows never mix with real ones.
SELECT string_agg(name, ', ')
  FROM (SELECT 'users' AS name WHERE EXISTS (SELECT FROM ledgerlock.users)
        UNION ALL SELECT 'subscriptions' WHERE EXISTS (SELECT FROM ledgerlock.subscriptions)
        UNION ALL SELECT 'stock' WHERE EXISTS (SELECT FROM ledgerlock.stock)
        UNION ALL SELECT 'orders' WHERE EXISTS (SELECT FROM ledgerlock.orders)) AS filled
