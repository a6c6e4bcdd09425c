-- Keeps every other writer out until the rows with their own numbers are committed.
-- Locks: SHARE ROW EXCLUSIVE on the tables that are filled; readers go on.
LOCK TABLE ledgerlock.users, ledgerlock.subscriptions, ledgerlock.stock, ledgerlock.orders,
           ledgerlock.order_lines, ledgerlock.transfers IN SHARE ROW EXCLUSIVE MODE
