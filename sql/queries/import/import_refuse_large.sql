-- Takes out all lines of orders with more SKUs than one batch can lock: its user and 999 SKUs. Locks: none.
-- Serves: every pending order can be decided.
WITH long AS (
  SELECT order_ref, customer_ref
    FROM pg_temp.import_orders
   GROUP BY order_ref, customer_ref
  HAVING count(*) > 999
), large AS (
  SELECT i.order_ref, i.customer_ref, count(DISTINCT i.sku) AS skus
    FROM long JOIN pg_temp.import_orders AS i USING (order_ref, customer_ref)
   GROUP BY i.order_ref, i.customer_ref
  HAVING count(DISTINCT i.sku) > 999
), gone AS (
  DELETE FROM pg_temp.import_orders AS i USING large AS x
   WHERE (i.order_ref, i.customer_ref) = (x.order_ref, x.customer_ref)
  RETURNING i.line, format('order "%s" of customer "%s" has %s different SKUs, at most 999 fit into one order',
                           i.order_ref, i.customer_ref, x.skus) AS reason, i.raw
)
INSERT INTO pg_temp.import_bad (kind, line, reason, raw) SELECT 'orders', line, reason, raw FROM gone
