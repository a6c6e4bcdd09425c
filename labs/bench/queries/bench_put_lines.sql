-- Makes the lines of the orders. $1 bigint: 0, in the order of their ids; 1, in no order. Columns: none. Locks: the new rows, their orders and SKUs FOR KEY SHARE.
INSERT INTO order_lines (order_id, sku_id, unit_price_minor, qty)
SELECT order_id, sku_id, unit_price_minor, qty FROM pg_temp.bench_lines 
 ORDER BY CASE WHEN $1::bigint = 0 THEN order_id ELSE hashint8extended(order_id, 9) END, sku_id
