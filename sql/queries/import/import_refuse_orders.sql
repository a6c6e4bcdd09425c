-- Takes out all lines of orders that exist with other lines. Locks: none.
-- Serves: the same key with another body is an error.
WITH other AS (
  SELECT h.order_ref, h.customer_ref
    FROM pg_temp.import_heads AS h
    JOIN users AS u ON u.external_ref = h.customer_ref
    JOIN orders AS o ON (o.user_id, o.idempotency_key) = (u.user_id, h.order_ref)
   WHERE o.request_hash <> h.request_hash
), gone AS (
  DELETE FROM pg_temp.import_orders AS i USING other AS x
   WHERE (i.order_ref, i.customer_ref) = (x.order_ref, x.customer_ref)
  RETURNING i.line, format('order "%s" of customer "%s" is already there with other lines',
                           i.order_ref, i.customer_ref) AS reason, i.raw
)
INSERT INTO pg_temp.import_bad (kind, line, reason, raw) SELECT 'orders', line, reason, raw FROM gone
