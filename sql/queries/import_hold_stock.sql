-- Holds the SKUs that new order lines will refer to, after the users and in key order, as workers do.
-- Columns: n bigint. Locks: stock FOR KEY SHARE, in key order.
WITH held AS MATERIALIZED (
  SELECT sku_id FROM ledgerlock.stock
   WHERE sku IN (SELECT sku FROM pg_temp.import_orders)
   ORDER BY sku_id
     FOR KEY SHARE
)
SELECT count(*) FROM held
