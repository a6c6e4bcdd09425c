-- Leaves nothing of the load to do for others: hint bits, visibility, what the planner knows.
-- Locks: SHARE UPDATE EXCLUSIVE on each table in turn.
VACUUM (ANALYZE) users, subscriptions, charges, stock, orders,
                 order_lines, wallet_entries
