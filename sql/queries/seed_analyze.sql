-- Tells the planner what was loaded. Locks: SHARE UPDATE EXCLUSIVE.
ANALYZE ledgerlock.users, ledgerlock.subscriptions, ledgerlock.stock, ledgerlock.orders, ledgerlock.order_lines,
        ledgerlock.transfers
