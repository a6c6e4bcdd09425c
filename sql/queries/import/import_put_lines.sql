-- Makes the lines of a part of the orders made before: the same SKU at the same price is summed.
-- $1 and $2 bigint: numbers of heads above $1, up to $2.
-- Columns: lines bigint, units bigint, amount bigint; those of rejected orders do not count. Locks: the new rows.
WITH made AS (
  INSERT INTO order_lines (order_id, sku_id, unit_price_minor, qty)
  SELECT o.order_id, s.sku_id, i.unit_price, sum(i.quantity)::bigint
    FROM pg_temp.import_heads AS h
    JOIN users AS u ON u.external_ref = h.customer_ref
    JOIN orders AS o ON (o.user_id, o.idempotency_key) = (u.user_id, h.order_ref)
    JOIN pg_temp.import_orders AS i ON (i.order_ref, i.customer_ref) = (h.order_ref, h.customer_ref)
    JOIN stock AS s ON s.sku = i.sku
   WHERE h.no > $1 AND h.no <= $2
   GROUP BY o.order_id, s.sku_id, i.unit_price
   ORDER BY o.order_id, s.sku_id, i.unit_price
  RETURNING order_id, unit_price_minor, qty
)
SELECT count(*), coalesce(sum(m.qty), 0)::bigint, coalesce(sum(m.qty * m.unit_price_minor), 0)::bigint
  FROM made AS m JOIN orders AS o USING (order_id)
 WHERE o.state = 'pending'
