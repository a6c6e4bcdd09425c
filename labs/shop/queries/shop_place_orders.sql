-- Orders of one piece of one SKU, the first SKUs the most wanted; the same ones on both sides.
-- $1 bigint: how many. $2 bigint: users. $3 bigint: SKUs. $4 text: what no other call gives as part of the keys.
-- Columns: none. Locks: key share on the users.
WITH wanted AS MATERIALIZED (
  SELECT g, 'shop-' || 1 + floor(random() * $2::bigint)::bigint AS name, 'shop-' || 1 + floor(power(random(), 1.5) * $3::bigint)::bigint AS sku
    FROM generate_series(1, $1::bigint) AS g
), placed AS MATERIALIZED (
  SELECT u.user_id, s.sku_id, s.unit_price_minor AS amount,
         place_order(u.user_id, $4::text || '-' || w.g, jsonb_build_array(jsonb_build_object('sku', w.sku, 'qty', 1))) AS order_id
    FROM wanted AS w JOIN users AS u ON u.external_ref = w.name JOIN stock AS s ON s.sku = w.sku
)
INSERT INTO ledgerlock_plain.items (kind, item_id, user_id, sku_id, qty, amount_minor, periods)
SELECT 'order', order_id, user_id, sku_id, 1, amount, 1 FROM placed
