-- Holds the users that new rows will refer to, in the order in which workers lock them: an import next to a running
-- pool waits its turn and deadlocks with nobody. Columns: n bigint. Locks: users FOR KEY SHARE, in key order.
WITH held AS MATERIALIZED (
  SELECT user_id FROM ledgerlock.users
   WHERE external_ref IN (SELECT customer_ref FROM pg_temp.import_orders
                          UNION SELECT customer_ref FROM pg_temp.import_subscriptions)
   ORDER BY user_id
     FOR KEY SHARE
)
SELECT count(*) FROM held
