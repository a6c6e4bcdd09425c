-- Stores the orders as place_order would, hash included. $1 text currency. Locks: the new rows, their users FOR KEY SHARE.
INSERT INTO ledgerlock.orders (order_id, user_id, idempotency_key, request_hash, total_minor, currency, bucket, placed_at)
SELECT order_id, user_id, key, sha256(convert_to(lines::text, 'UTF8')), total_minor, $1::text, bucket, placed_at
  FROM pg_temp.seed_orders
 ORDER BY order_id
