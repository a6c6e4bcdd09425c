-- Empties the tables of the pool, of a database that is marked as a laboratory. Columns: none.
-- Locks: ACCESS EXCLUSIVE on each.
TRUNCATE ledgerlock.users, ledgerlock.subscriptions, ledgerlock.charges, ledgerlock.stock, ledgerlock.orders,
         ledgerlock.order_lines, ledgerlock.stock_movements, ledgerlock.transfers, ledgerlock.lock_incidents,
         ledgerlock.workers
