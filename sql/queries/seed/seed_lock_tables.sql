-- Keeps every other writer out until the rows, which bring their own ids, are committed.
-- Locks: SHARE ROW EXCLUSIVE on the tables that are filled; readers go on.
LOCK TABLE users, subscriptions, stock, orders,
           order_lines, wallet_entries IN SHARE ROW EXCLUSIVE MODE
