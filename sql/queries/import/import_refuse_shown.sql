-- The lines that are shown are bad. $1 text the reason. Locks: none.
INSERT INTO pg_temp.import_bad (kind, line, reason, raw)
SELECT 'stock', line, $1::text, raw FROM pg_temp.import_stock
UNION ALL
SELECT 'subscriptions', line, $1::text, raw FROM pg_temp.import_subscriptions
UNION ALL
SELECT 'orders', line, $1::text, raw FROM pg_temp.import_orders
