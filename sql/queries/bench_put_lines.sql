-- Makes the lines of the orders. Columns: none. Locks: the new rows, their orders and SKUs FOR KEY SHARE.
INSERT INTO ledgerlock.order_lines (order_id, sku_id, unit_price_minor, qty)
SELECT order_id, sku_id, unit_price_minor, qty FROM pg_temp.bench_lines ORDER BY order_id, sku_id
