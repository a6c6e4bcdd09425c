-- Empties every table that a benchmark fills or that a pool writes. Locks: ACCESS EXCLUSIVE on each.
-- The epoch stays: Redis remembers it.
TRUNCATE ledgerlock.users, ledgerlock.subscriptions, ledgerlock.charges, ledgerlock.stock, ledgerlock.orders,
         ledgerlock.order_lines, ledgerlock.stock_movements, ledgerlock.transfers, ledgerlock.lock_incidents,
         ledgerlock.workers
