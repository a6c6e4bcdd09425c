-- Lets nobody close a month between the check of the lines and their rows, as place_order and subscribe do. Locks: the
-- tables, as INSERT does; waits while close-month works.
LOCK TABLE orders, subscriptions, seals IN ROW EXCLUSIVE MODE
