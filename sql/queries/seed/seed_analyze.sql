-- Tells the planner what was loaded. Locks: SHARE UPDATE EXCLUSIVE.
ANALYZE users, subscriptions, stock, orders, order_lines,
        wallet_entries
