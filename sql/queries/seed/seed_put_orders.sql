-- Stores a part of the orders as place_order would, hash included. $1 text currency. Locks: the new rows, their users FOR KEY SHARE.
INSERT INTO orders (order_id, user_id, idempotency_key, request_hash, total_minor, currency, placed_at)
SELECT order_id, user_id, key, order_hash(lines), total_minor, $1::text, placed_at
  FROM pg_temp.seed_orders
 ORDER BY order_id
