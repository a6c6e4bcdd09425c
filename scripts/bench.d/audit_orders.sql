-- Orders of four lines each for users that are there, over 10,000 SKUs with stock for all, to be served before an
-- audit is timed. Variables: orders, users.
INSERT INTO ledgerlock.stock (sku_id, sku, initial_qty, on_hand, unit_price_minor, currency)
SELECT g, 'bench-' || g, 1000000, 1000000, 100, 'USD' FROM generate_series(1, 10000) AS g;
INSERT INTO ledgerlock.orders (order_id, user_id, idempotency_key, request_hash, total_minor, currency, bucket, placed_at)
SELECT g, g % :users + 1, 'bench-' || g, sha256(convert_to(g::text, 'UTF8')), 400, 'USD', (g * 4 % 10000 + 1) % 64,
       now() - interval '1 hour'
  FROM generate_series(1, :orders) AS g;
INSERT INTO ledgerlock.order_lines (order_id, sku_id, unit_price_minor, qty)
SELECT g, g * 4 % 10000 + line, 100, 1 FROM generate_series(1, :orders) AS g, generate_series(1, 4) AS line;
VACUUM (ANALYZE) ledgerlock.stock, ledgerlock.orders, ledgerlock.order_lines, ledgerlock.users;
