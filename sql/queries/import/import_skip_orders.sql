-- Removes staged orders that exist already, with the same lines or (refused before) with others.
-- Columns: same bigint, how many had the same lines. Locks: none.
WITH gone AS (
  DELETE FROM pg_temp.import_heads AS h USING users AS u, orders AS o
   WHERE u.external_ref = h.customer_ref
     AND (o.user_id, o.idempotency_key) = (u.user_id, h.order_ref)
  RETURNING o.request_hash = h.request_hash AS is_same
)
SELECT count(*) FILTER (WHERE is_same) FROM gone
