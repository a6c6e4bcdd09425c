-- Makes the orders of the lines, placed an hour ago, by users 1 to n in turn. $1 bigint: n.
-- $2 bigint: 0, in the order of their ids, which is their age; 1, in no order.
-- Columns: none. Locks: the new rows, their users FOR KEY SHARE.
INSERT INTO orders (order_id, user_id, idempotency_key, request_hash, total_minor, currency, placed_at)
SELECT order_id, order_id % $1::bigint + 1, 'bench-' || order_id, sha256(convert_to(order_id::text, 'UTF8')),
       sum(qty * unit_price_minor), 'USD', now() - interval '1 hour'
  FROM pg_temp.bench_lines
 GROUP BY order_id
 ORDER BY CASE WHEN $2::bigint = 0 THEN order_id ELSE hashint8extended(order_id, 8) END
