-- Empties the tables of the pool, of a database that is marked as a laboratory. Columns: none.
-- Locks: ACCESS EXCLUSIVE on each.
DO $$
BEGIN -- events last, as all others lock them, and without the trigger, which lets nobody empty them
  TRUNCATE users, subscriptions, charges, stock, orders,
           order_lines, lock_incidents,
           workers, batches, contracts, wallet_entries, stock_entries, subscription_terms;
  ALTER TABLE events DISABLE TRIGGER events_are_never_emptied;
  TRUNCATE events;
  ALTER TABLE events ENABLE TRIGGER events_are_never_emptied;
END $$
