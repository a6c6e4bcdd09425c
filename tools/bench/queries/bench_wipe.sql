-- Empties every table that a benchmark fills or that a pool writes. Locks: ACCESS EXCLUSIVE on each.
TRUNCATE users, subscriptions, charges, stock, orders,
         order_lines, lock_incidents,
         workers, batches, events, contracts, wallet_entries, stock_entries, subscription_terms
