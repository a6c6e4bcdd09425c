-- Empties the tables of the pool, of a database that is marked as a laboratory. Columns: none.
-- Locks: ACCESS EXCLUSIVE on each.
TRUNCATE users, subscriptions, charges, stock, orders,
         order_lines, lock_incidents,
         workers, batches, events, contracts, wallet_entries, stock_entries, subscription_terms
