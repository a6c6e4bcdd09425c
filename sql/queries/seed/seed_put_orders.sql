-- Makes orders with their lines as place_order would, hash included, spread over the week before now. $1 and $2 bigint: the orders
-- above $1, up to $2. Locks: the new rows, their users and SKUs FOR KEY SHARE.
WITH line AS MATERIALIZED (
  SELECT l.*, w.base, s.sku, s.unit_price_minor FROM pg_temp.seed_of AS w, pg_temp.seed_lines AS l, stock AS s
   WHERE s.sku_id = w.base + l.sku_id AND l.order_id > $1 AND l.order_id <= $2
), made AS (
  INSERT INTO orders (order_id, user_id, idempotency_key, request_hash, total_minor, currency, placed_at)
  SELECT w.base + l.order_id, w.base + l.user_id, 'order-' || lpad(l.order_id::text, greatest(length(l.order_id::text), 7), '0'),
         order_hash(jsonb_agg(jsonb_build_object('sku', l.sku, 'qty', l.qty))), sum(l.qty * l.unit_price_minor), w.currency,
         w.at - interval '7 days' + 604800000000 / (w.orders + 1) * l.order_id * interval '1 microsecond'
    FROM line AS l, pg_temp.seed_of AS w
   GROUP BY l.order_id, l.user_id, w.base, w.orders, w.at, w.currency
   ORDER BY l.order_id
)
INSERT INTO order_lines (order_id, sku_id, unit_price_minor, qty)
SELECT base + order_id, base + sku_id, unit_price_minor, qty FROM line ORDER BY order_id, sku_id
