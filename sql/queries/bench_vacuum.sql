-- Leaves nothing of the load to do for others: hint bits, visibility, what the planner knows.
-- Locks: SHARE UPDATE EXCLUSIVE on each table in turn.
VACUUM (ANALYZE) ledgerlock.users, ledgerlock.subscriptions, ledgerlock.charges, ledgerlock.stock, ledgerlock.orders,
                 ledgerlock.order_lines, ledgerlock.stock_movements, ledgerlock.transfers
