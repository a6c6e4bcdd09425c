-- Empties the tables of the pool, of a database that is marked as a laboratory. Columns: none.
-- Locks: ACCESS EXCLUSIVE on each.
TRUNCATE users, subscriptions, charges, stock, orders,
         order_lines, lock_incidents,
         workers, batches, subscription_journal, order_journal,
         stock_journal, deposits, contracts,
         deliveries, subscription_terms, signups, prorations, closures,
         corrections, write_offs, adjustments, returns
