-- Empties the tables of the pool, of a database that is marked as a laboratory. Columns: none.
-- Locks: ACCESS EXCLUSIVE on each.
DO $$
BEGIN -- events are never emptied otherwise, not even to repair them
  ALTER TABLE events DISABLE TRIGGER events_are_never_emptied;
  TRUNCATE users, subscriptions, charges, stock, orders,
           order_lines, lock_incidents,
           workers, batches, events, contracts, wallet_entries, stock_entries, subscription_terms;
  ALTER TABLE events ENABLE TRIGGER events_are_never_emptied;
END $$
