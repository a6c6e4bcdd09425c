-- Orders of four lines each, over 10,000 SKUs with stock for all, by the users that are there, to be served before an
-- audit is timed. Only the lines are drawn here; the rest is made of them by what ledgerlock-bench makes its orders
-- with. Variable: orders.
\set create_lines `cat "$LL_ROOT/labs/bench/queries/bench_create_lines.sql"`
\set put_stock `cat "$LL_ROOT/labs/bench/queries/bench_put_stock.sql"`
\set put_orders `cat "$LL_ROOT/labs/bench/queries/bench_put_orders.sql"`
\set put_lines `cat "$LL_ROOT/labs/bench/queries/bench_put_lines.sql"`
SELECT count(*) AS users FROM ledgerlock.users \gset
BEGIN;
:create_lines;
INSERT INTO pg_temp.bench_lines (order_id, sku_id, unit_price_minor, qty)
SELECT g, g * 4 % 10000 + line, 100, 1 FROM generate_series(1, :orders) AS g, generate_series(1, 4) AS line;
PREPARE put_stock (bigint, bigint) AS :put_stock;
EXECUTE put_stock (100, 0);
PREPARE put_orders (bigint, bigint) AS :put_orders;
EXECUTE put_orders (:users, 0);
PREPARE put_lines (bigint) AS :put_lines;
EXECUTE put_lines (0);
COMMIT;
VACUUM (ANALYZE) ledgerlock.stock, ledgerlock.orders, ledgerlock.order_lines, ledgerlock.users;
