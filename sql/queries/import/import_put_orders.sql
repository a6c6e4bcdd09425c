-- Makes a part of the staged orders. An order with SKUs that are not sold here is recorded as rejected, naming them all.
-- $1 text currency, $2 text time or null for now, $3 and $4 bigint: numbers of heads above $3, up to $4. Columns: new bigint, rejected bigint.
-- Locks: the new rows.
WITH made AS (
  INSERT INTO orders (user_id, idempotency_key, request_hash, state, reason, skus,
                                 total_minor, currency, placed_at, decided_at)
  SELECT u.user_id, h.order_ref, h.request_hash,
         CASE WHEN x.unknown IS NULL THEN 'pending' ELSE 'rejected' END,
         CASE WHEN x.unknown IS NOT NULL THEN 'unknown_sku' END, x.unknown,
         x.total, $1::text, h.placed_at,
         CASE WHEN x.unknown IS NOT NULL THEN greatest(coalesce($2::timestamptz, now()), h.placed_at) END
    FROM pg_temp.import_heads AS h
    JOIN users AS u ON u.external_ref = h.customer_ref
    JOIN (SELECT i.order_ref, i.customer_ref,
                 array_agg(DISTINCT i.sku ORDER BY i.sku) FILTER (WHERE s.sku_id IS NULL) AS unknown,
                 coalesce(sum(i.quantity * i.unit_price) FILTER (WHERE s.sku_id IS NOT NULL), 0)::bigint AS total
            FROM pg_temp.import_heads AS k
            JOIN pg_temp.import_orders AS i USING (order_ref, customer_ref)
            LEFT JOIN stock AS s ON s.sku = i.sku
           WHERE k.no > $3 AND k.no <= $4
           GROUP BY i.order_ref, i.customer_ref) AS x USING (order_ref, customer_ref)
   ORDER BY h.no
  RETURNING state
)
SELECT count(*), count(*) FILTER (WHERE state = 'rejected') FROM made
